// Keys that belong to an input method. Shared by the widget and the dashboard.
/// <reference lib="dom" />

/** The key code of every key that an input method handles. */
const TAKEN = 229;

/** Safari reports the end of composition before the key that ended it. */
export const isComposing = (event: KeyboardEvent): boolean =>
  event.isComposing || event.keyCode === TAKEN;
