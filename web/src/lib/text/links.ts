/** Links that may be followed, and how they are shown. */

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

export interface Link {
  href: string;
  /** The host, or the address of a `mailto:`, to be shown beside the words. */
  host: string;
}

/** The link if its scheme is harmless and its address says plainly where it leads; null otherwise. */
export function safeLink(address: string): Link | null {
  if (/[\p{Cc}\p{Cf}\p{Z}]/u.test(address)) return null;
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (!SCHEMES.has(url.protocol)) return null;
  if (url.protocol === "mailto:") return { href: url.href, host: url.pathname.slice(0, 120) };
  if (!url.hostname || url.username || url.password) return null;
  return { href: url.href, host: url.host };
}

/** Whether the words of a link already are its host or address, so that it need not be repeated. */
export function saysItsHost(words: string, link: Link): boolean {
  const plain = words.trim().replace(/\/$/, "");
  return plain === link.href.replace(/\/$/, "") || plain === link.host;
}
