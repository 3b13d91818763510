// What the browser keeps for the dashboard, on this device or for this tab. One that may keep
// nothing of a site, as where cookies are blocked, has it as long as the page is there.

type Place = Pick<Storage, "getItem" | "setItem" | "removeItem">;

function placeOf(name: "localStorage" | "sessionStorage"): Place {
  try {
    const place = globalThis[name];
    place.getItem("");
    return place;
  } catch {
    const kept = new Map<string, string>();
    return {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => void kept.set(key, value),
      removeItem: (key) => void kept.delete(key),
    };
  }
}

export const onDevice = placeOf("localStorage");
export const inTab = placeOf("sessionStorage");
