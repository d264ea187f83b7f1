import plain from "../icons/mark.svg?url";
import waiting from "../icons/mark-waiting.svg?url";

/** The icon of the tab has an amber dot while something waits for the person. */
export function showWaiting(isWaiting: boolean): void {
  const link = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  const wanted = isWaiting ? waiting : plain;
  if (link && link.getAttribute("href") !== wanted) link.setAttribute("href", wanted);
}
