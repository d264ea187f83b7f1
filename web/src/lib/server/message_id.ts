/** ULIDs: ids that sort by time; the last 80 bits are random. */

const LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

export function messageId(now = Date.now(), random = crypto.getRandomValues(new Uint8Array(16))) {
  let time = "";
  for (let rest = now, place = 0; place < 10; place += 1) {
    time = LETTERS.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  return time + Array.from(random, (byte) => LETTERS.charAt(byte % 32)).join("");
}
