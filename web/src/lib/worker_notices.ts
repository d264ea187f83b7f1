/** Notices for browsers, such as Chrome on Android, in which only a worker may show them. */

import { router } from "./router.svelte";

const WORKER = "/notices-worker.js";
/** No screen is below it, so the worker controls no page. */
const SCOPE = "/notices/";
/** The one policy of the page; the only address that it ever gives. */
const POLICY = "accord-notices";

export interface Notice {
  close(): void;
}

interface Policies {
  createPolicy(
    name: string,
    rules: { createScriptURL: () => string },
  ): { createScriptURL(url: string): unknown };
}

let registered: Promise<ServiceWorkerRegistration> | undefined;

/** Shows it as soon as the worker is there, unless it was withdrawn before. */
export function showByWorker(title: string, options: NotificationOptions): Notice {
  let isOver = false;
  registered ??= register();
  const shown = registered.then(async (worker) => {
    if (!isOver) await worker.showNotification(title, options);
    return worker;
  });
  // Without a worker the badge and the title of the page still count.
  shown.catch(() => {});
  const withdraw = async () => {
    const worker = await shown;
    for (const each of await worker.getNotifications({ tag: options.tag ?? "" })) each.close();
  };
  return {
    close() {
      isOver = true;
      withdraw().catch(() => {});
    },
  };
}

async function register(): Promise<ServiceWorkerRegistration> {
  const { trustedTypes } = window as { trustedTypes?: Policies };
  const policy = trustedTypes?.createPolicy(POLICY, { createScriptURL: () => WORKER });
  const address = (policy?.createScriptURL(WORKER) ?? WORKER) as string;
  const made = await navigator.serviceWorker.register(address, { scope: SCOPE });
  navigator.serviceWorker.onmessage = ({ data }: MessageEvent<{ path: string }>) => {
    router.go(data.path);
  };
  await isActive(made);
  return made;
}

function isActive(made: ServiceWorkerRegistration): Promise<void> {
  const worker = made.installing ?? made.waiting;
  if (made.active || !worker) return Promise.resolve();
  return new Promise((done) => {
    worker.onstatechange = () => {
      if (worker.state === "activated") done();
    };
  });
}
