// Every bound of the signalling, unit in the name. T1, T2 and T4 are those of RFC 3261.
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

export const SIGNALLING_LIMITS = {
  t1Ms: 500,
  t2Ms: 4 * SECOND_MS,
  t4Ms: 5 * SECOND_MS,
  /** 64 × T1: timers B, D, F, H, J, L and M. */
  transactionMs: 32 * SECOND_MS,

  // Addresses of one name (RFC 3263 4.3)
  hopsMax: 4,
  /** An INVITE without any answer: the next address, where there is one. */
  hopMs: 4 * SECOND_MS,
  /** Over a connection: longer than connecting may take, or an INVITE given up still leaves. */
  hopStreamMs: 6 * SECOND_MS,
  /** How long calls begin elsewhere when an address has said nothing to one of them. */
  hopAvoidedMs: 5 * MINUTE_MS,

  // Floods
  serverTransactionsMax: 2000,
  /** At most so many of the transactions may begin something; the rest is for calls that exist. */
  newTransactionsMax: 1500,
  invitesPerSecondMax: 20,
  invitesBurstMax: 40,
  invitesPerSecondOverallMax: 200,
  /** Answers a second and source to what is refused without being remembered. */
  refusalsPerSecondMax: 20,
  refusalsOverallPerSecondMax: 400,
  sourcesMax: 4096,
  retryAfterS: 5,
  /** What a far end may ask for: none is asked again and again, and none is forgotten. */
  retryAfterMinS: 1,
  retryAfterMaxS: 3600,

  // Connections
  connectionsMax: 512,
  connectionsPerHostMax: 64,
  /** From its first byte until a message is whole. */
  messageMs: 10 * SECOND_MS,
  connectMs: 5 * SECOND_MS,
  connectionIdleMs: 60 * MINUTE_MS,
  keepaliveMs: 60 * SECOND_MS,
  connectionBufferBytesMax: 1024 * 1024,
  localHostsMax: 1024,
  portAttemptsMax: 20,

  // Dialogs
  sessionExpiresS: 1800,
  sessionExpiresMinS: 90,
  /** Where a smaller one cannot be refused. */
  sessionExpiresLeastS: 30,
  sessionExpiresMaxS: 24 * 3600,
  forksMax: 8,
  sipfragCharsMax: 200,
  referMs: 3 * MINUTE_MS,
  glareRetriesMax: 3,

  // Registration
  registerRetryMinMs: 2 * SECOND_MS,
  registerRetryMaxMs: 5 * MINUTE_MS,
  registerRefusedRetryMs: MINUTE_MS,
  registerExpiresMinS: 10,
  registerExpiresMaxS: 24 * 3600,
  natKeepaliveMs: 25 * SECOND_MS,
  farewellMs: 2 * SECOND_MS,
} as const;
