import { createHash } from 'node:crypto';
import type { ExportFile, ResolvedJobSpec } from '../../../contracts/index.js';
import { stringifyExactly } from '../../../contracts/jsonl/exact-json.js';
import type { RetryPolicy } from '../../../contracts/rank-protocol.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import { hfConfig } from './hf-config.js';
import { companionsOf, sourceConfig, sourceFolder } from './model-source.js';

/** Folder of an export: its files with sizes and hashes. */
export class ExportFolder {
  readonly files: ExportFile[] = [];

  constructor(
    private readonly objects: ObjectStore,
    private readonly prefix: string,
    private readonly policy: RetryPolicy,
  ) {}

  /**
   * Writes a file.
   * @param content may be called again after an error of the store
   * @param options size in bytes, required above 75 GB
   */
  async put(
    name: string,
    content: () => AsyncIterable<Uint8Array>,
    options?: { bytes: number },
  ): Promise<void> {
    this.files.push(await this.again(() => this.putHashed(name, content, options)));
  }

  /** Writes the model's `config.json`. */
  async putConfig(spec: ResolvedJobSpec, weights: 'bf16' | 'fp16' | 'fp32'): Promise<void> {
    const folder = sourceFolder(spec);
    const source = folder === null ? null : await this.again(() => sourceConfig(this.objects, folder, spec));
    const config = `${stringifyExactly(hfConfig(spec, weights, source))}\n`;
    await this.put('config.json', async function* () {
      yield Buffer.from(config);
    });
  }

  /** Writes the files of uploaded models that the job used, such as the tokenizer. */
  async putCompanions(spec: ResolvedJobSpec): Promise<void> {
    for (const { name, content } of await this.again(() => companionsOf(this.objects, spec)))
      await this.put(name, content);
  }

  private again<T>(work: () => Promise<T>): Promise<T> {
    return retryTransient(work, this.policy);
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
