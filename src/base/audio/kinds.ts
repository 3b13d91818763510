// Names of the background sounds, as assistants' settings have them (`off` aside).
export type AmbienceKind = "office" | "city" | "forest" | "crowded_room" | "cafe" | "nature";
