// What every benchmark prints in the same form: the machine, its figures, one last line of JSON.
import { cpus, totalmem } from "node:os";

export function percentile(values: number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const index = Math.min(sorted.length - 1, Math.ceil((percent / 100) * sorted.length) - 1);
  return sorted[Math.max(0, index)] ?? 0;
}

export function median(values: number[]): number {
  return percentile(values, 50);
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

export function machine(): Record<string, string | number> {
  const [first] = cpus();
  return {
    cpu: first?.model ?? "unknown",
    cores: cpus().length,
    memory_gib: Math.round(totalmem() / 2 ** 30),
    node: process.version,
  };
}

/** The last line of every benchmark. */
export function printResult(name: string, result: object): void {
  print(JSON.stringify({ bench: name, machine: machine(), ...result }));
}
