// The wire of nodes without a NATS server: always down. They find one another's work in the store.
import { WireFault, type Wire } from "#cluster/wire.ts";

export const noWire: Wire = {
  publish: () => undefined,
  subscribe: () => () => undefined,
  request: () => Promise.reject(new WireFault("down")),
  state: () => "down",
  onState: () => () => undefined,
  close: () => Promise.resolve(),
};
