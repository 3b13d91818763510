// What the browser stores for the dashboard, on this device or for this tab. Where it may store
// nothing for a site, as when cookies are blocked, or is full, it is kept while the page is open.

type Place = Pick<Storage, "getItem" | "setItem" | "removeItem">;

function tried<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}

function placeOf(name: "localStorage" | "sessionStorage"): Place {
  const kept = new Map<string, string>();
  return {
    getItem: (key) => kept.get(key) ?? tried(() => globalThis[name].getItem(key)),
    setItem: (key, value) => {
      kept.set(key, value);
      tried(() => {
        globalThis[name].setItem(key, value);
        // Once stored it is not kept here, too: other tabs may change it there.
        kept.delete(key);
      });
    },
    removeItem: (key) => {
      kept.delete(key);
      tried(() => globalThis[name].removeItem(key));
    },
  };
}

export const onDevice = placeOf("localStorage");
export const inTab = placeOf("sessionStorage");
