import { account } from "./account.svelte";
import { Refusal } from "./http";

/** What to tell the person about a request that failed; a credential that ended signs them out. */
export function problemOf(error: unknown): string {
  if (error instanceof Refusal && error.isUnauthenticated) account.ended(error.message);
  return error instanceof Error && error.message ? error.message : "This did not work. Reload.";
}
