// The few pictures, drawn with a line of 24 by 24.
const PATHS = {
  overview: "M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z",
  assistants: "M12 3v3M6 8h12a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2v-7a2 2 0 0 1 2-2zM9 13v1M15 13v1",
  calls: "M6 3h3l2 5-2.5 1.5a11 11 0 0 0 6 6L16 13l5 2v3a2 2 0 0 1-2 2A16 16 0 0 1 4 5a2 2 0 0 1 2-2z",
  conversations: "M4 5h16v11H9l-5 4z",
  inbox: "M4 13l3-8h10l3 8v6H4zM4 13h5l1 2h4l1-2h5",
  knowledge: "M5 4h10l4 4v12H5zM15 4v4h4M8 13h8M8 17h5",
  tools: "M14 7a4 4 0 0 1 5-3l-2.5 2.5 1 2 2 1L22 7a4 4 0 0 1-5 5l-8 8a2 2 0 0 1-3-3z",
  numbers: "M9 4 7 20M17 4l-2 16M4 9h17M3 15h17",
  leads: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-4 3-6 6-6s6 2 6 6M16 11a3 3 0 1 0-1-5.5M17 14c2.5.5 4 2.5 4 6",
  campaigns: "M4 10v4l3 .5L15 19V5l-8 4.5zM18 9a4 4 0 0 1 0 6M8 15l1 5",
  webhooks: "M12 3a4 4 0 0 1 3.5 6l3 5M12 7l-3.5 6.5M6 12a4 4 0 1 0 4 6h7M18 18.5a2 2 0 1 0 0-.1",
  ledger: "M5 3h14v18l-3-2-2 2-2-2-2 2-2-2-3 2zM9 8h6M9 12h6",
  money: "M3 7h18v11H3zM12 15a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM6.5 12.5h.01M17.5 12.5h.01",
  keys: "M15 9a4 4 0 1 0-4.5 4L9 15v2H7v2H4v-3l6-6M16 7.5v.01",
  team: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM16 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 19c0-3.500 2.500-5 6-5s6 1.500 6 5M14 14.500c4-1 8 .500 8 4.500",
  audit: "M5 3h10l4 4v14H5zM9 11l2 2 4-4M9 17h6",
  back: "M15 5l-7 7 7 7",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  close: "M6 6l12 12M18 6 6 18",
  add: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M4 12H2M22 12h-2M5 5l1.5 1.5M17.5 17.5 19 19M5 19l1.5-1.5M17.5 6.5 19 5",
  out: "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
  listen: "M4 14v-2a8 8 0 0 1 16 0v2M4 14h3v6H5a1 1 0 0 1-1-1zM20 14h-3v6h2a1 1 0 0 0 1-1z",
  stop: "M7 7h10v10H7z",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14M16 5v14",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  check: "M5 12l5 5 9-10",
  clip: "M20 11l-8 8a5 5 0 0 1-7-7l9-9a3.5 3.5 0 0 1 5 5l-9 9a2 2 0 0 1-3-3l8-8",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  again: "M20 12a8 8 0 1 1-2.5-5.8M20 4v4.5h-4.5",
  download: "M12 5v11M7 11l5 5 5-5M5 20h14",
  upload: "M12 16V5M7 10l5-5 5 5M5 20h14",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
