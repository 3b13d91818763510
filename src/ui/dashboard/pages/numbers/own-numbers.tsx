// The account's numbers: what each costs, until when it is paid, and what uses it.
import { useState } from "preact/hooks";
import { useAssistants, useCampaigns, useOwnNumbers, type OwnNumber } from "#ui/dashboard/data/lists.ts";
import { Needs } from "#ui/dashboard/data/rights.tsx";
import { rowsOf } from "#ui/dashboard/data/rows.ts";
import { Icon } from "#ui/dashboard/kit/icons.tsx";
import { day, instant, money, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Card, Empty, Status } from "#ui/dashboard/kit/layout.tsx";
import { Table, type Column } from "#ui/dashboard/kit/table.tsx";
import { TwoLines } from "#ui/dashboard/kit/two-lines.tsx";
import { countryName } from "./countries.ts";
import { NumberDialog } from "./number-dialog.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";

export interface User {
  href: string;
  name: string;
}

/** Assistants and campaigns, by the number's id; null until they are known. */
function useUsers(): (numberId: number) => User[] | null {
  const assistants = useAssistants().value;
  const campaigns = useCampaigns().value;
  return (numberId) => assistants && campaigns && [
    ...assistants.filter((one) => one.phone_number_id === numberId)
      .map(({ id, name }) => ({ href: `#/assistants/${id}`, name })),
    ...campaigns.filter((one) => one.phone_number_ids.includes(numberId))
      .map(({ id, name }) => ({ href: `#/campaigns/${id}`, name })),
  ];
}

/** The date that matters in its state; the server decides what happens then. */
export function untilOf(number: OwnNumber): string | null {
  const { released_at: released, paid_until: paid, grace_until: grace, status } = number;
  if (status === "grace" && grace) return t(`unpaid, works until ${day(instant(grace))}`);
  if (status === "suspended" && grace) return t(`unpaid, lost on ${day(instant(grace))}`);
  if (released && paid) return t(`until ${day(instant(paid))}`);
  return paid ? t(`paid until ${day(instant(paid))}`) : null;
}

export function NumberStatus({ number }: { number: OwnNumber }) {
  return number.released_at && number.status === "active"
    ? <Status code="released" tone="warn" />
    : <Status code={number.status} />;
}

const columnsFor = (usersOf: (numberId: number) => User[] | null): Column<OwnNumber>[] => [
  {
    title: "Number", grow: 1.6,
    cell: ({ phone_number: text, nickname }) => (
      <TwoLines main={<span class="numbers-number">{formatPhone(text)}</span>} sub={nickname} />
    ),
  },
  {
    title: "Type", priority: 3, fits: "8rem", isWords: true,
    cell: ({ type_label: type }) => t(type),
  },
  {
    title: "Country", priority: 3, fits: "9rem",
    cell: ({ country_code: code }) => <span class="two">{countryName(code)}</span>,
  },
  {
    title: "Status", grow: 1.3, fits: "10.6rem",
    cell: (number) => {
      const paid = number.paid_until;
      return (
        <span title={paid ? whenExactly(paid) : undefined}>
          <TwoLines main={<NumberStatus number={number} />} sub={untilOf(number)} />
        </span>
      );
    },
  },
  {
    title: "Per month", align: "end", priority: 2, fits: "6.6rem",
    cell: ({ monthly_price: price }) => price > 0 ? money(price) : "–",
  },
  {
    title: "Used by", priority: 2, grow: 1.5,
    cell: ({ id }) => {
      const users = usersOf(id);
      if (!users) return "…";
      const [first, ...more] = users;
      if (!first) return <span class="soft">Nobody</span>;
      return (
        <span class="two">
          <a href={first.href}>{first.name}</a>{more.length > 0 && ` +${more.length}`}
        </span>
      );
    },
  },
];

export function OwnNumbers() {
  const numbers = useOwnNumbers();
  const usersOf = useUsers();
  const [openId, setOpenId] = useState<number | null>(null);
  const open = numbers.value?.find(({ id }) => id === openId);
  return (
    <Card class="flush">
      <Table
        label="Numbers" columns={columnsFor(usersOf)} rowKey={({ id }) => id}
        rows={rowsOf(numbers.value, numbers.error, numbers.reload)}
        onClick={({ id }) => setOpenId(id)}
        empty={(
          <Empty icon="numbers" title="No numbers yet">
            <p>Buy one to be called at, or connect your own telephone system.</p>
            <p class="actions">
              <Needs right="buy">
                <a class="button main" href="#/numbers/buy"><Icon name="add" />Buy a number</a>
              </Needs>
              <a class="button" href="#/numbers/sip-trunks">SIP trunks</a>
            </p>
          </Empty>
        )}
      />
      {open && (
        <NumberDialog
          number={open} users={usersOf(open.id)} onChange={numbers.reload}
          onClose={() => setOpenId(null)}
        />
      )}
    </Card>
  );
}
