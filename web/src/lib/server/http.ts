import type { ErrorResponse } from "./types";

/** The server said no; nothing was changed. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
  }

  /** Whether the credential is missing, expired or revoked. */
  get isUnauthenticated(): boolean {
    return this.status === 401;
  }
}

/** The server did not answer. */
export class Unreachable extends Error {
  constructor() {
    super("The server does not answer.");
  }
}

const CLAIMED_NAME = "accord.name";

/** The name that this tab uses on a server that runs with `--auth open`. */
export function claimedName(): string {
  return sessionStorage.getItem(CLAIMED_NAME) ?? "";
}

export function claimName(name: string): void {
  sessionStorage.setItem(CLAIMED_NAME, name);
}

/** The address of an endpoint for this caller. */
export function addressOf(path: string): string {
  const name = claimedName();
  if (!name) return path;
  return `${path}${path.includes("?") ? "&" : "?"}as=${encodeURIComponent(name)}`;
}

const TIMEOUT_MS = 20_000;

export interface RequestOptions {
  body?: unknown;
  signal?: AbortSignal;
}

/** What the server answers, decoded; throws Refusal or Unreachable. */
export async function request<T>(
  method: string,
  path: string,
  options: RequestOptions = {},
): Promise<T> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const response = await answer(addressOf(path), {
    method,
    headers: {
      accept: "application/json",
      ...(options.body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    credentials: "same-origin",
    redirect: "error",
    cache: "no-store",
    signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
  });
  if (!response.ok) throw await refusalOf(response);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

export function get<T>(path: string, options?: RequestOptions): Promise<T> {
  return request<T>("GET", path, options);
}

async function answer(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted && !isTimeout(init.signal)) throw error;
    throw new Unreachable();
  }
}

function isTimeout(signal: AbortSignal): boolean {
  return signal.reason instanceof DOMException && signal.reason.name === "TimeoutError";
}

async function refusalOf(response: Response): Promise<Refusal> {
  try {
    const { error } = (await response.json()) as ErrorResponse;
    return new Refusal(response.status, error.code, error.message, error.details);
  } catch {
    // A proxy in between, or a server that is just starting.
    return new Refusal(
      response.status,
      "TRANSPORT_ERROR",
      `The server answered ${response.status}.`,
    );
  }
}
