// The SDP that browsers offer for an audio-only call.

export const OFFERED_FINGERPRINT = Array.from({ length: 32 }, (_, at) =>
  at.toString(16).padStart(2, "0")).join(":");

/** As Chromium makes it; `instead`: lines that a test puts in place of others. */
export function pageOffer(instead: Record<string, string> = {}): string {
  const lines = [
    "v=0", "o=- 694053753754118924 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0",
    "a=extmap-allow-mixed", "a=msid-semantic: WMS", "m=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8",
    "c=IN IP4 0.0.0.0", "a=rtcp:9 IN IP4 0.0.0.0", "a=ice-ufrag:DX9Q",
    "a=ice-pwd:mtzIgeQ40V63jNNgnFb1Xlvn", "a=ice-options:trickle", `a=fingerprint:sha-256 ${OFFERED_FINGERPRINT}`,
    "a=setup:actpass", "a=mid:0", "a=sendrecv", "a=msid:- 73f1d025", "a=rtcp-mux", "a=rtcp-rsize",
    "a=rtpmap:111 opus/48000/2", "a=fmtp:111 minptime=10;useinbandfec=1", "a=rtpmap:63 red/48000/2",
    "a=rtpmap:0 PCMU/8000", "a=ssrc:2956898193 cname:mS3UK8qbTfZqFr2X", "",
  ];
  return lines.map((line) => instead[line] ?? line).join("\r\n");
}
