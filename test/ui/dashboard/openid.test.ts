// Signing in to the dashboard at an OpenID provider, in a real browser.
import { after, test } from "node:test";
import { noBrowser, openBrowser } from "#support/pages/browser.ts";
import { startTestServer } from "#support/server.ts";
import { SIGN_IN_ROUTES, startOpenIdProvider } from "#support/vendors/openid.ts";

const skip = noBrowser();

test("[DB765] opening a link to a page and signing in at the OpenID provider leads to that page", { skip, timeout: 120_000 }, async () => {
  const provider = await startOpenIdProvider();
  after(provider.close);
  const server = await startTestServer({
    env: {
      PARLEY_OIDC_ISSUER: provider.issuer, PARLEY_OIDC_CLIENT_ID: provider.clientId,
      PARLEY_OIDC_CLIENT_SECRET: provider.clientSecret, PARLEY_OIDC_NAME: "Example",
      PARLEY_OIDC_DOMAINS: "example.org", PARLEY_OIDC_DEFAULT_ROLE: "viewer",
    },
  });
  after(server.close);
  provider.allow(`${server.url}${SIGN_IN_ROUTES.callback}`);
  const browser = await openBrowser("refused");
  after(() => browser.close());
  const page = await browser.newPage();
  await page.goto(`${server.url}/#/tools`);
  const way = page.getByRole("link", { name: "Sign in with Example" });
  // Refused at first: the page is not forgotten.
  provider.person = { sub: "eve-1", email: "eve@evil.example", email_verified: true, name: "Eve" };
  await way.click();
  await page.getByText("You are not a member here.").waitFor();
  await page.context().clearCookies();
  provider.person = { sub: "ana-1", email: "ana@example.org", email_verified: true, name: "Ana" };
  await way.click();
  await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
  // Only once: from then on the address says it.
  await page.goto(`${server.url}/#/team`);
  await page.goto(`${server.url}/`);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
});
