// Buying a number: searched by country and digits, bought with the balance in view, after a
// confirmation that names the price.
import { useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { ParleyError } from "#client/client.ts";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { fieldErrors, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { useMe } from "#ui/dashboard/data/lists.ts";
import { useData } from "#ui/dashboard/data/use-data.ts";
import { Button, SelectField, sends, TextField } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { money } from "#ui/dashboard/kit/format.ts";
import { Card, Empty } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { countryName, SOLD_OPTIONS } from "./countries.ts";
import { commandOf, t } from "#ui/dashboard/kit/texts.ts";

interface Offer {
  phone_number: string;
  phone_number_formatted: string;
  country_code: string;
  price: number;
  address_requirements: string;
  sms_capable: boolean;
}

interface Search {
  country: string;
  digits: string;
}

const DIGITS_MAX = 10;
const NO_SEARCH: Search = { country: "US", digits: "" };

/** The search when the page was left. */
let lastSearch = NO_SEARCH;

const columnsFor = (choose: (offer: Offer) => void): Column<Offer>[] => [
  {
    title: "Number", grow: 1.9,
    cell: ({ phone_number_formatted: text, address_requirements: address }) => (
      <TwoLines
        main={<span class="numbers-number">{text}</span>}
        sub={address === "none" ? null : `Needs an address: ${address}`}
      />
    ),
  },
  { title: "Country", cell: ({ country_code: code }) => countryName(code), priority: 2 },
  { title: "Text messages", cell: ({ sms_capable: can }) => can ? "Yes" : "No", priority: 2 },
  { title: "Per month", cell: ({ price }) => money(price), align: "end", grow: 1.25 },
  {
    title: "Buy", align: "end", grow: "none",
    cell: (offer) => (
      <Button needs="buy" label={`Buy ${offer.phone_number_formatted}`} onClick={() => choose(offer)}>
        Buy
      </Button>
    ),
  },
];

export function Buy() {
  const api = useApi();
  const [search, setSearch] = useState(lastSearch);
  const [sent, setSent] = useState(lastSearch);
  const [offer, setOffer] = useState<Offer | null>(null);
  const offers = useData(`offers ${sent.country} ${sent.digits}`, async () =>
    (await unwrap(api.GET("/user/phone-numbers/search", {
      params: {
        query: { country_code: sent.country, ...(sent.digits ? { contains: sent.digits } : {}) },
      },
    }))).data);
  const change = (part: Partial<Search>): void => {
    lastSearch = { ...search, ...part };
    setSearch(lastSearch);
  };
  const submit = (): void => {
    if (search.country === sent.country && search.digits === sent.digits) offers.reload();
    else setSent(search);
  };
  const errors = fieldErrors(offers.error);
  const isAtFault = Object.keys(errors).length > 0;
  return (
    <>
      <Card>
        <form
          class="numbers-search" role="search" aria-label="Numbers for sale"
          onSubmit={sends(submit)}
        >
          <SelectField
            label="Country" value={search.country} options={SOLD_OPTIONS}
            onInput={(country) => change({ country })} error={errors.country_code}
          />
          <TextField
            label="Contains digits" value={search.digits} type="tel" autoComplete="off"
            onInput={(text) => change({ digits: text.replaceAll(/\D/g, "").slice(0, DIGITS_MAX) })}
            placeholder="415" error={errors.contains}
          />
          <Button kind="main" icon="search" type="submit" isBusy={offers.isLoading}>Search</Button>
          <Balance />
        </form>
      </Card>
      <Card class="flush numbers-offers">
        <Table
          label="Numbers for sale" columns={columnsFor(setOffer)}
          rows={isAtFault ? rowsOf([]) : rowsOf(offers.value, offers.error, offers.reload)}
          rowKey={({ phone_number: number }) => number}
          empty={sent.digits === "" ? <NothingForSale /> : (
            <Empty icon="search" title="No matching numbers">
              Try fewer digits or another country.
            </Empty>
          )}
        />
      </Card>
      {offer && (
        <BuyDialog
          key={offer.phone_number} offer={offer} onClose={() => setOffer(null)}
          onRefused={offers.reload}
        />
      )}
    </>
  );
}

/** Also shown on a server that sells no numbers at all. */
const NothingForSale = () => (
  <Empty icon="numbers" title="No numbers of this country are for sale here">
    Your operator can sell numbers by setting up Twilio, or
    with <code>{commandOf("number import")}</code>. A telephone system of your own needs
    neither: <a href="#/numbers/sip-trunks">add a SIP trunk</a>.
  </Empty>
);

function Balance() {
  const { value } = useMe();
  return value && (
    <p class="numbers-balance">Balance <b>{money(value.total_balance)}</b></p>
  );
}

/** The server has refused. After any other error the number may have been bought. */
const isDecided = (error: unknown): boolean =>
  error instanceof ParleyError && error.status < 500 && ![409, 429].includes(error.status);

function BuyDialog({ offer, onClose, onRefused }: {
  offer: Offer; onClose(): void; onRefused(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const [, navigate] = useLocation();
  const has = useMe().value?.total_balance;
  const { phone_number: number, phone_number_formatted: text, price } = offer;
  const buy = async (): Promise<void> => {
    try {
      await unwrap(api.POST("/user/phone-numbers/purchase", {
        body: { phone_number: number },
      }));
    } catch (error) {
      if (isDecided(error)) onRefused();
      throw error;
    }
    toasts.notify(t(`${text} is yours`));
    navigate("/numbers");
  };
  return (
    <Confirm
      title={`Buy ${text}?`} action={`Buy for ${money(price)}`} kind="main" onConfirm={buy}
      onClose={onClose}
    >
      {money(price)} is charged now and every month until you release it.{" "}
      {has !== undefined && (has >= price
        ? <>Your balance is {money(has)}; {money(has - price)} are left.</>
        : <>Your balance is {money(has)}, which is not enough.</>)}
    </Confirm>
  );
}
