// Phones show notices only for a page that has a worker. This one does nothing else: it sees no
// request and keeps no copy of anything.

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data.path));
});

/** The page that is open goes there; without one, another is opened. */
async function open(path) {
  const [page] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (!page) return self.clients.openWindow(path);
  page.postMessage({ path });
  // Only a click of a person may bring a window to the front.
  return page.focus().catch(() => page);
}
