// What the routes of numbers and of SIP trunks have in common on the wire.
export const NICKNAME_CHARS_MAX = 50;
