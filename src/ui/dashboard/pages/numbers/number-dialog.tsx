// One number: its facts, its name, and releasing it.
import { useState } from "preact/hooks";
import type { OwnNumber } from "#ui/dashboard/data/lists.ts";
import { fieldErrors, messageOf, unwrap, useApi } from "#ui/dashboard/data/session.tsx";
import { Button, sends, TextField, useWork } from "#ui/dashboard/kit/controls.tsx";
import { Confirm, Dialog, useToasts } from "#ui/dashboard/kit/dialog.tsx";
import { day, instant, money, whenExactly } from "#ui/dashboard/kit/format.ts";
import { Facts, Notice } from "#ui/dashboard/kit/layout.tsx";
import { t } from "#ui/dashboard/kit/texts.ts";
import { formatPhone } from "#ui/dashboard/pages/phone.ts";
import { countryName } from "./countries.ts";
import { NumberStatus, untilOf, type User } from "./own-numbers.tsx";

const NICKNAME_CHARS_MAX = 50;

interface Props {
  number: OwnNumber;
  users: User[] | null;
  onChange(): void;
  onClose(): void;
}

export function NumberDialog(props: Props) {
  const { number, users, onChange, onClose } = props;
  const [isReleasing, setReleasing] = useState(false);
  if (isReleasing) {
    return (
      <Release
        number={number} onChange={onChange} onClose={onClose} onBack={() => setReleasing(false)}
      />
    );
  }
  const { phone_number: text, monthly_price: price, paid_until: paid, status } = number;
  return (
    <Dialog title={formatPhone(text)} onClose={onClose}>
      {(status === "grace" || status === "suspended") && (
        <Notice tone={status === "grace" ? "warn" : "bad"}>
          <span>It is {untilOf(number)}. Top up the balance and it is paid automatically.</span>
        </Notice>
      )}
      <Rename number={number} onChange={onChange} />
      <Facts
        rows={[
          ["Status", <NumberStatus key="status" number={number} />],
          ["Type", t(number.type_label)],
          ["Country", countryName(number.country_code)],
          ["Per month", price > 0 ? money(price) : "–"],
          ["Paid until", paid ? whenExactly(paid) : "–"],
          ["Text messages", number.sms_capable ? "Yes" : "No"],
          ["Used by", users === null ? "…" : users.length === 0 ? "Nobody" : (
            <span key="users" class="numbers-users">
              {users.map(({ href, name }) => <a key={href} href={href}>{name}</a>)}
            </span>
          )],
          ["Added", whenExactly(number.created_at)],
        ]}
      />
      {number.released_at
        ? <p class="soft">Released on {whenExactly(number.released_at)}; nothing more is charged.</p>
        : (
          <div class="form-actions">
            <Button needs="buy" onClick={() => setReleasing(true)}>
              {number.type === "normal" ? "Release…" : "Delete…"}
            </Button>
          </div>
        )}
    </Dialog>
  );
}

function Rename({ number, onChange }: Pick<Props, "number" | "onChange">) {
  const api = useApi();
  const toasts = useToasts();
  const [nickname, setNickname] = useState(number.nickname ?? "");
  const [error, setError] = useState<unknown>(null);
  const work = useWork(setError);
  const put = (name: string) => unwrap(api.PUT("/user/phone-numbers/{id}", {
    params: { path: { id: number.id } }, body: { nickname: name },
  }));
  const save = async (): Promise<void> => {
    const before = number.nickname ?? "";
    await put(nickname.trim());
    setError(null);
    toasts.notify("Name saved", async () => {
      await put(before);
      setNickname(before);
      onChange();
    });
    onChange();
  };
  const isSame = nickname.trim() === (number.nickname ?? "");
  return (
    <form
      class="numbers-rename"
      onSubmit={sends(() => {
        if (!isSame) work.run(save);
      })}
    >
      <TextField
        label="Name" value={nickname} onInput={setNickname} maxLength={NICKNAME_CHARS_MAX}
        placeholder="Front desk" autoComplete="off"
        error={error ? fieldErrors(error).nickname ?? messageOf(error) : undefined}
      />
      <Button needs="buy" type="submit" isBusy={work.isBusy} disabled={isSame}>Save name</Button>
    </form>
  );
}

function Release({ number, onChange, onClose, onBack }: Omit<Props, "users"> & {
  onBack(): void;
}) {
  const api = useApi();
  const toasts = useToasts();
  const { id, phone_number: text, type, paid_until: paid } = number;
  const isBought = type === "normal";
  return (
    <Confirm
      title={isBought ? `Release ${formatPhone(text)}?` : `Delete ${formatPhone(text)}?`}
      action={isBought ? "Release" : "Delete"} onClose={onBack}
      onConfirm={async () => {
        const { message } = await unwrap(
          api.DELETE("/user/phone-numbers/{id}", { params: { path: { id } } }));
        toasts.notify(message);
        onChange();
        onClose();
      }}
    >
      {isBought && paid
        ? `It works until ${day(instant(paid))}, then it is gone and somebody else may get it. Nothing more is charged.`
        : "It is gone at once. Assistants and campaigns that use it continue without it."}
    </Confirm>
  );
}
