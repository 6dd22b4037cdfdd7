import { createHash } from 'node:crypto';
import type { ExportFile, ResolvedJobSpec } from '../../contracts/index.js';
import type { RetryPolicy } from '../../contracts/rank-protocol.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { retry } from '../../platform/process/retry.js';
import { isRetryable } from '../common/errors.js';
import { stringifyExactly } from './exact-json.js';
import { hfConfig } from './hf-config.js';
import { companionsOf, sourceConfig, sourceFolder } from './model-source.js';

/** The folder that an export writes: its files, with their sizes and hashes. */
export class ExportFolder {
  readonly files: ExportFile[] = [];

  constructor(
    private readonly objects: ObjectStore,
    private readonly prefix: string,
    private readonly policy: RetryPolicy,
  ) {}

  /**
   * @param content may be called again, when the store was out of reach
   * @param options how many bytes there are, where they may be more than 75 GB
   */
  async put(
    name: string,
    content: () => AsyncIterable<Uint8Array>,
    options?: { bytes: number },
  ): Promise<void> {
    this.files.push(await this.again(() => this.putHashed(name, content, options)));
  }

  /** The model's `config.json`. */
  async putConfig(spec: ResolvedJobSpec, weights: 'bf16' | 'fp16' | 'fp32'): Promise<void> {
    const folder = sourceFolder(spec);
    const source = folder === null ? null : await this.again(() => sourceConfig(this.objects, folder, spec));
    const config = `${stringifyExactly(hfConfig(spec, weights, source))}\n`;
    await this.put('config.json', async function* () {
      yield Buffer.from(config);
    });
  }

  /** What comes from the uploaded models that the job used: the tokenizer and the like. */
  async putCompanions(spec: ResolvedJobSpec): Promise<void> {
    for (const { name, content } of await this.again(() => companionsOf(this.objects, spec)))
      await this.put(name, content);
  }

  private again<T>(work: () => Promise<T>): Promise<T> {
    return retry(work, this.policy, { retryable: isRetryable });
  }

  private async putHashed(
    name: string,
    content: () => AsyncIterable<Uint8Array>,
    options?: { bytes: number },
  ): Promise<ExportFile> {
    const hash = createHash('sha256');
    const hashed = async function* () {
      for await (const piece of content()) {
        hash.update(piece);
        yield piece;
      }
    };
    const { bytes } = await this.objects.put(`${this.prefix}/${name}`, hashed(), options);
    return { name, bytes, sha256: hash.digest('hex') };
  }
}
