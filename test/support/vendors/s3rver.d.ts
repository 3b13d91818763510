// The part of @20minutes/s3rver, which has no types of its own, that s3-server.ts uses.
declare module "@20minutes/s3rver" {
  import type { Server } from "node:http";
  import type { AddressInfo } from "node:net";
  import type { Readable } from "node:stream";

  interface Store {
    putContent(path: string, content: Buffer | Readable): Promise<[bytes: number, md5: string]>;
    deleteObject(bucket: string, key: string): Promise<void>;
  }
  export default class S3rver {
    constructor(options: {
      address: string; port: number; silent: boolean; directory: string; vhostBuckets: boolean;
      configureBuckets: { name: string }[];
    });
    readonly httpServer: Server;
    readonly store: Store;
    run(): Promise<AddressInfo>;
  }
}
