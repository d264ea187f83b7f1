import { createSubscriber } from "svelte/reactivity";

/** The present second; whatever reads it in a component is brought up to date each second. */
const subscribe = createSubscriber((update) => {
  const timer = setInterval(update, 1000);
  return () => clearInterval(timer);
});

export function now(): number {
  subscribe();
  return Date.now();
}
