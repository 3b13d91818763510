// What servers that speak OpenAI's dialect differ in by their address. Used wherever a setting has
// the address of such a server: models, embeddings and speech.

/** Azure OpenAI, whose `authorization` header is for Microsoft Entra's tokens alone. */
const AZURE = /\.azure\.(com|us|cn)$/i;

/** The header with the key of the server at `url`; none without a key. */
export function keyHeaders(url: string, key: string | null): Record<string, string> {
  if (key === null) return {};
  return AZURE.test(new URL(url).hostname) ? { "api-key": key } : { authorization: `Bearer ${key}` };
}
