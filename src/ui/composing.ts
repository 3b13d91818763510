// Keys that belong to an input method. Shared by the widget and the dashboard.
/// <reference lib="dom" />

/** What input methods have taken has this code. */
const TAKEN = 229;

/** Safari says that the composing is over before it tells of the key that ended it. */
export const isComposing = (event: KeyboardEvent): boolean =>
  event.isComposing || event.keyCode === TAKEN;
