// A recording of what a page's microphone says and its loudspeaker plays, sample by sample on one
// time line, whichever path the sound takes. The page's policy forbids what it is made of, so the
// context has to bypass it.
import type { Page } from "playwright-core";

/** Runs before the page's own code. */
export const TAPE = `
  const tape = window.tape = { rate: 0, said: [], heard: [] };
  const worklet = URL.createObjectURL(new Blob([\`
    registerProcessor("tape", class extends AudioWorkletProcessor {
      said = [];
      heard = [];
      process([said, heard]) {
        const one = (input) => input?.[0] ? input[0].slice() : new Float32Array(128);
        this.said.push(one(said));
        this.heard.push(one(heard));
        if (this.said.length < 40) return true;
        this.port.postMessage({ said: this.said, heard: this.heard });
        this.said = [];
        this.heard = [];
        return true;
      }
    });
  \`], { type: "text/javascript" }));
  const connect = AudioNode.prototype.connect;
  const tapes = new WeakMap();
  const tapeOf = async (context) => {
    await context.audioWorklet.addModule(worklet);
    const node = new AudioWorkletNode(context, "tape", {
      numberOfInputs: 2, channelCount: 1, channelCountMode: "explicit",
    });
    node.port.onmessage = ({ data }) => {
      tape.rate = context.sampleRate;
      tape.said.push(...data.said);
      tape.heard.push(...data.heard);
    };
    connect.call(node, context.destination);
    return node;
  };
  AudioNode.prototype.connect = function (target, ...rest) {
    if (!tapes.has(this.context)) tapes.set(this.context, tapeOf(this.context));
    const input = target === this.context.destination ? 1
      : this instanceof MediaStreamAudioSourceNode ? 0 : null;
    if (input !== null) {
      void tapes.get(this.context).then((node) => connect.call(this, node, 0, input));
    }
    return connect.call(this, target, ...rest);
  };`;

export interface PageTape {
  rate: number;
  said: Int16Array;
  heard: Int16Array;
}

export async function readTape(page: Page): Promise<PageTape> {
  const { rate, said, heard } = await page.evaluate<{ rate: number; said: string; heard: string }>(`
    (() => {
      const text = (chunks) => {
        const bytes = new Uint8Array(Int16Array.from(
          chunks.flatMap((chunk) => [...chunk]), (sample) => sample * 32767).buffer);
        let all = "";
        for (let at = 0; at < bytes.length; at += 32768) {
          all += String.fromCharCode(...bytes.subarray(at, at + 32768));
        }
        return btoa(all);
      };
      return { rate: tape.rate, said: text(tape.said), heard: text(tape.heard) };
    })()`);
  const samples = (base64: string): Int16Array => {
    const bytes = Buffer.from(base64, "base64");
    return new Int16Array(new Uint8Array(bytes).buffer);
  };
  return { rate, said: samples(said), heard: samples(heard) };
}
