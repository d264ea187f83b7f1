/** Durations, times, numbers and lists as people read them. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `3 min 48 s` under ten minutes, `14 min`, `2 h 5 min`, `3 days`; `18 s`, `4.1 s`, `40 ms`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "0 s";
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(Math.floor(ms / 100) / 10).toFixed(1).replace(/\.0$/, "")} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < 10 * MINUTE)
    return withRest(Math.floor(ms / MINUTE), "min", Math.floor((ms % MINUTE) / SECOND), "s");
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < DAY)
    return withRest(Math.floor(ms / HOUR), "h", Math.floor((ms % HOUR) / MINUTE), "min");
  return plural(Math.floor(ms / DAY), "day");
}

function withRest(whole: number, unit: string, rest: number, small: string): string {
  return rest ? `${whole} ${unit} ${rest} ${small}` : `${whole} ${unit}`;
}

/** Time left in whole seconds, so that a countdown does not show tenths. */
export function timeLeft(until: string | null, now: number): string {
  if (until === null) return "no time limit";
  const ms = Date.parse(until) - now;
  if (!(ms > 0)) return "time is up";
  return `${duration(Math.max(SECOND, Math.floor(ms / SECOND) * SECOND))} left`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  hour12: false,
});
const CLOCK_SECONDS = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
const WEEKDAY = new Intl.DateTimeFormat("en-GB", { weekday: "short" });
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DATE_YEAR = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
});

/** `14:02`, local and 24 h. */
export function clock(ts: string): string {
  const at = Date.parse(ts);
  return Number.isNaN(at) ? "" : CLOCK.format(at);
}

export function clockSeconds(ts: string): string {
  const at = Date.parse(ts);
  return Number.isNaN(at) ? "" : CLOCK_SECONDS.format(at);
}

/** `14:02` today, `Mon 14:02` within six days, else `12 Nov 14:02`. */
export function moment(ts: string, now: number): string {
  const at = Date.parse(ts);
  if (Number.isNaN(at)) return "";
  const prefix = dayOf(at, now);
  return prefix ? `${prefix} ${CLOCK.format(at)}` : CLOCK.format(at);
}

/** Empty today, `Mon` within six days, else `12 Nov`, with the year if it is another. */
export function dayOf(at: number, now: number): string {
  const then = new Date(at);
  const today = new Date(now);
  if (then.toDateString() === today.toDateString()) return "";
  if (Math.abs(now - at) < 6 * DAY) return WEEKDAY.format(at);
  return then.getFullYear() === today.getFullYear() ? DATE.format(at) : DATE_YEAR.format(at);
}

/** For titles of times: `2026-11-18 13:02:11 UTC`. */
export function utc(ts: string): string {
  const at = Date.parse(ts);
  return Number.isNaN(at) ? "" : `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

const NUMBER = new Intl.NumberFormat("en-GB");
export function number(value: number): string {
  return NUMBER.format(value);
}

/** `1 line`, `1,204 lines`. */
export function plural(count: number, thing: string, things = `${thing}s`): string {
  return `${number(count)} ${count === 1 ? thing : things}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function list(words: readonly string[], last = "and"): string {
  if (words.length < 2) return words[0] ?? "";
  return `${words.slice(0, -1).join(", ")} ${last} ${words[words.length - 1]}`;
}

/** `01M7GN84` of a long id; the whole one is for copying. */
export function shortId(id: string): string {
  return id.length > 12 ? id.slice(0, 8) : id;
}
