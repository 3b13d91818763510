// Composition root, the part about money: what it was spent on, how long it lasts, how it is topped
// up. Called by features.ts.
import type { Accounts } from "#features/accounts/accounts.ts";
import { createBalance } from "#features/accounts/money/balance.ts";
import { createBalanceMails } from "#features/accounts/money/balance-mails.ts";
import { createCosts } from "#features/accounts/money/costs.ts";
import { createStatements } from "#features/accounts/money/statements.ts";
import { createTopUps } from "#features/accounts/money/top-ups.ts";
import type { Config } from "#config/config.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import type { Mailer } from "#providers/mail/port.ts";
import type { ModelCatalog } from "#providers/models/catalog.ts";
import { createStripe } from "#providers/payments/stripe.ts";
import type { Storage } from "#storage/storage.ts";

interface MoneyOptions {
  config: Config;
  storage: Pick<Storage, "balance" | "costs" | "statements" | "topUps">;
  accounts: Accounts;
  modelCatalog: Pick<ModelCatalog, "nameOf">;
  bus: EventBus;
  mailer: Mailer;
  system: System;
  log: Logger;
}

export function createMoney(options: MoneyOptions) {
  const { config, storage, accounts, modelCatalog, system } = options;
  return {
    costs: createCosts({ store: storage.costs, modelName: modelCatalog.nameOf }),
    balance: createBalance({
      store: storage.balance, system,
      prices: {
        messageMicros: config.PARLEY_MESSAGE_PRICE ?? 0,
        callMinuteMicros: config.PARLEY_CALL_PRICE ?? 0,
      },
    }),
    statements: createStatements({ store: storage.statements, system }),
    balanceMails: createBalanceMails({
      ...options, store: storage.balance, findAccount: accounts.find,
      publicUrl: config.PARLEY_PUBLIC_URL,
    }),
    topUps: createTopUps({
      store: storage.topUps, accounts, system, link: config.PARLEY_TOPUP_URL,
      payments: paymentsOf(config, system),
    }),
  };
}

function paymentsOf(config: Config, system: System) {
  const {
    PARLEY_STRIPE_URL: url, PARLEY_STRIPE_KEY: key, PARLEY_STRIPE_WEBHOOK_SECRET: webhookSecret,
  } = config;
  if (url === null || key === null || webhookSecret === null) return null;
  return createStripe({ url, key, webhookSecret, system });
}
