// What the browser keeps for the dashboard, on this device or for this tab. One that may keep
// nothing of a site, as where cookies are blocked, or has no room, has it as long as the page is
// there.

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
        // Other tabs may change it there.
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
