// What the routes of numbers and of SIP trunks have in common on the wire.
import { Type } from "@sinclair/typebox";

export const NICKNAME_CHARS_MAX = 50;
export const ErrorSchema = Type.Object({ error: Type.String() });
export const InvalidSchema = Type.Object({
  message: Type.String(),
  errors: Type.Record(Type.String(), Type.Array(Type.String())),
});
