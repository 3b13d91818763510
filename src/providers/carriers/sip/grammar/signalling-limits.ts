// Every bound of the signalling, unit in the name. T1, T2 and T4 are those of RFC 3261.
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

export const SIGNALLING_LIMITS = {
  t1Ms: 500,
  t2Ms: 4 * SECOND_MS,
  t4Ms: 5 * SECOND_MS,
  /** 64 × T1: timers B, D, F, H, J, L and M. */
  transactionMs: 32 * SECOND_MS,

  // Failover between the addresses of one name (RFC 3263 4.3)
  hopsMax: 4,
  /** How long an INVITE may get no response before it goes to the next address, if there is one. */
  hopMs: 4 * SECOND_MS,
  /** The same over TCP and TLS: above `connectMs`, or an abandoned INVITE would still be sent. */
  hopStreamMs: 6 * SECOND_MS,
  /** How long calls prefer other addresses after one did not respond to a call. */
  hopAvoidedMs: 5 * MINUTE_MS,

  // Floods
  serverTransactionsMax: 2000,
  /** Beyond this, new calls are refused; the rest is reserved for requests of existing calls. */
  newTransactionsMax: 1500,
  invitesPerSecondMax: 20,
  invitesBurstMax: 40,
  invitesPerSecondOverallMax: 200,
  /** Stateless refusals per second and source. */
  refusalsPerSecondMax: 20,
  refusalsOverallPerSecondMax: 400,
  sourcesMax: 4096,
  retryAfterS: 5,
  /** Bounds for a far end's Retry-After, so that we neither retry in a loop nor never. */
  retryAfterMinS: 1,
  retryAfterMaxS: 3600,

  // Connections
  connectionsMax: 512,
  connectionsPerHostMax: 64,
  /** From a message's first byte to its last. */
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
  /** The smallest interval used when the far end's cannot be refused. */
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
