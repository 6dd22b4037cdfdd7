import { createHash } from 'node:crypto';
import { type ExportFile, ZerofleetError } from '../../contracts/index.js';
import {
  ADAPTER_CONFIG_FILE,
  ADAPTER_WEIGHTS_FILE,
  COMPANION_FILES,
  CONFIG_FILE,
  INDEX_FILE,
} from '../../platform/models/documents.js';
import { inCheckpoint } from '../contents/deepspeed/names.js';
import { type ArchiveFile, archiveFiles } from './archive.js';

/** Names of the files of a folder. */
export interface FolderNames {
  /** Files besides the weights that are read and stored unchanged. */
  documents: ReadonlySet<string>;
  weights: RegExp;
  /** True if the folder may hold a DeepSpeed checkpoint. */
  checkpoints: boolean;
}

export const MODEL_NAMES: FolderNames = {
  documents: new Set([CONFIG_FILE, INDEX_FILE, ...COMPANION_FILES]),
  weights: /^model(-\d{5}-of-\d{5})?\.safetensors$/,
  checkpoints: true,
};
export const ADAPTER_NAMES: FolderNames = {
  documents: new Set([ADAPTER_CONFIG_FILE, ...COMPANION_FILES]),
  weights: new RegExp(`^${ADAPTER_WEIGHTS_FILE.replace('.', '\\.')}$`),
  checkpoints: false,
};

/** Maximum number of ignored names that are reported. */
export const MAX_IGNORED = 100;
const SHOWN_NAME = 255;

/** Kind of a file in a model's folder, from its name; null for an ignored file. */
export function kindOf(name: string, { documents, weights }: FolderNames): 'document' | 'weights' | null {
  if (documents.has(name)) return 'document';
  return weights.test(name) ? 'weights' : null;
}

/** SHA-256 over names and digests of files; equal for equal folders. */
export function digestOf(files: readonly Pick<ExportFile, 'name' | 'sha256'>[]): string {
  const hash = createHash('sha256');
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, sha256 } of sorted) hash.update(`${name} ${sha256}\n`);
  return `sha256:${hash.digest('hex')}`;
}

export interface FolderFile extends Omit<ArchiveFile, 'path'> {
  /** One of a fixed set of names, valid as an object key. */
  name: string;
  kind: 'document' | 'weights' | 'checkpoint';
}

/**
 * Selects the files of a model from an archive. The first file that could belong to a model determines its folder; files
 * elsewhere or with other names are ignored.
 */
export class ModelFolder {
  readonly ignored: string[] = [];
  private readonly seen = new Set<string>();
  private folder: string | null = null;
  /** Folder of a DeepSpeed checkpoint. */
  private checkpoint: string | null = null;

  constructor(private readonly names: FolderNames) {}

  /** @throws (while it is read) ZerofleetError `model_archive_invalid`, `model_too_large`; errors of the body */
  async *files(body: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<FolderFile> {
    for await (const { path, bytes, content } of archiveFiles(body, limit)) {
      const state = this.names.checkpoints ? inCheckpoint(path) : null;
      if (state !== null) this.checkpoint ??= state.root;
      if (state !== null && state.root === this.checkpoint) {
        yield { name: this.once(state.name), kind: 'checkpoint', bytes, content };
        continue;
      }
      const name = path.at(-1) as string;
      const kind = kindOf(name, this.names);
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
