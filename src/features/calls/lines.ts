// The ways out to a telephone.
import type { Hosted } from "./hosted/hosted.ts";

/** The way out to a telephone; `to` is spelt as the carrier wants it. */
export type Line =
  | { carrier: "loopback" }
  /** Over the operator's account at a hosted carrier. */
  | { carrier: "hosted"; hosted: Hosted }
  | { carrier: "sip"; trunkId: number; to: string };
