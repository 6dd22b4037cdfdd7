import { createHash } from 'node:crypto';
import { type ExportFile, ZerofleetError } from '../../contracts/index.js';
import { COMPANION_FILES, CONFIG_FILE, INDEX_FILE } from '../../platform/models/documents.js';
import { inCheckpoint } from '../contents/deepspeed/names.js';
import { type ArchiveFile, archiveFiles } from './archive.js';

/** What is read and kept as it is, but for the weights. */
const DOCUMENTS: ReadonlySet<string> = new Set([CONFIG_FILE, INDEX_FILE, ...COMPANION_FILES]);
const WEIGHTS = /^model(-\d{5}-of-\d{5})?\.safetensors$/;

/** Names that are told of what was left out. */
export const MAX_IGNORED = 100;
const SHOWN_NAME = 255;

/** What a file of a model's folder is by its name; null for what is left out. */
export function kindOf(name: string): 'document' | 'weights' | null {
  if (DOCUMENTS.has(name)) return 'document';
  return WEIGHTS.test(name) ? 'weights' : null;
}

/** SHA-256 over names and digests of files; equal for equal folders. */
export function digestOf(files: readonly Pick<ExportFile, 'name' | 'sha256'>[]): string {
  const hash = createHash('sha256');
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, sha256 } of sorted) hash.update(`${name} ${sha256}\n`);
  return `sha256:${hash.digest('hex')}`;
}

export interface FolderFile extends Omit<ArchiveFile, 'path'> {
  /** One of a fixed set of names: fit for an object key. */
  name: string;
  kind: 'document' | 'weights' | 'checkpoint';
}

/**
 * The files of the one folder of an archive that make a model. The first file that could belong to a model says which folder
 * it is; what lies elsewhere, or has a name that means nothing here, is left out.
 */
export class ModelFolder {
  readonly ignored: string[] = [];
  private readonly seen = new Set<string>();
  private folder: string | null = null;
  /** Of a checkpoint of DeepSpeed. */
  private checkpoint: string | null = null;

  /** @throws (while it is read) ZerofleetError `model_archive_invalid`, `model_too_large`; what the body throws */
  async *files(body: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<FolderFile> {
    for await (const { path, bytes, content } of archiveFiles(body, limit)) {
      const state = inCheckpoint(path);
      if (state !== null) this.checkpoint ??= state.root;
      if (state !== null && state.root === this.checkpoint) {
        yield { name: this.once(state.name), kind: 'checkpoint', bytes, content };
        continue;
      }
      const name = path.at(-1) as string;
      const kind = kindOf(name);
      const folder = path.slice(0, -1).join('/');
      if (kind !== null) this.folder ??= folder;
      if (kind === null || folder !== this.folder) {
        if (this.ignored.length < MAX_IGNORED) this.ignored.push(path.join('/').slice(-SHOWN_NAME));
        continue;
      }
      yield { name: this.once(name), kind, bytes, content };
    }
  }

  private once(name: string): string {
    if (this.seen.has(name))
      throw new ZerofleetError('model_archive_invalid', `the archive has ${name} twice`);
    this.seen.add(name);
    return name;
  }
}
