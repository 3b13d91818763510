// Shared by the routes of numbers and of SIP trunks.
export const NICKNAME_CHARS_MAX = 50;
