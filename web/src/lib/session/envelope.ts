/** PVP envelopes as the page receives them, and safe ways to read payloads of any shape. */

export interface Envelope {
  v: number;
  id: string;
  ts: string;
  session: string;
  sender: string;
  type: string;
  payload: unknown;
  ref?: string | null;
  seq?: number;
  causal_refs?: readonly string[];
  fork?: string | null;
}

export type Fields = Record<string, unknown>;

export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : {};
}

export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : (JSON.stringify(value) ?? "");
}

export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}

export function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
