// Calls: those that are live, all there have been, and making new ones.
import { useState } from "preact/hooks";
import { Button } from "#ui/dashboard/kit/controls.tsx";
import { Page } from "#ui/dashboard/kit/layout.tsx";
import { CallList } from "./call-list.tsx";
import { LiveCards } from "./live-cards.tsx";
import { MakeCall, TryCall } from "./new-call.tsx";
import "./calls.css";

export function Calls() {
  const [dialog, setDialog] = useState<"make" | "try" | null>(null);
  const close = () => setDialog(null);
  return (
    <Page
      title="Calls"
      actions={(
        <>
          <Button needs="build" icon="play" onClick={() => setDialog("try")}>Try an assistant</Button>
          <Button kind="main" needs="build" icon="add" onClick={() => setDialog("make")}>New call</Button>
        </>
      )}
    >
      <LiveCards />
      <CallList />
      {dialog === "make" && <MakeCall onClose={close} />}
      {dialog === "try" && <TryCall onClose={close} />}
    </Page>
  );
}
