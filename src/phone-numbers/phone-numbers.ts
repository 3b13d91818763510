// Phone numbers of an account: the record and what other features read of it.
import type { Instant } from "../core/system.ts";

export const PHONE_NUMBER_TYPES = ["normal", "sip", "caller_id"] as const;
export type PhoneNumberType = (typeof PHONE_NUMBER_TYPES)[number];

export interface PhoneNumber {
  id: number;
  accountId: number;
  /** E.164, or what a SIP trunk calls itself. */
  phoneNumber: string;
  /** Two letters. */
  countryCode: string;
  type: PhoneNumberType;
  createdAt: Instant;
}

export interface PhoneNumberStore {
  /** Null when the account has no such number. */
  find(accountId: number, phoneNumberId: number): PhoneNumber | null;
  /** All numbers of the account, oldest first. */
  list(accountId: number): PhoneNumber[];
}

/** What the list of assignable numbers calls the types; the list of all numbers has other words. */
export const ASSIGNABLE_TYPE_LABELS: Record<PhoneNumberType, string> = {
  normal: "Normal",
  sip: "SIP",
  caller_id: "Caller ID",
};

/** A caller id number can only be shown to the called; nobody can ring it here. */
export function takesInboundCalls(type: PhoneNumberType): boolean {
  return type !== "caller_id";
}
