import { createHash } from 'node:crypto';
import { type ExportFile, ZerofleetError } from '../../contracts/index.js';
import {
  ADAPTER_CONFIG_FILE,
  ADAPTER_WEIGHTS_FILE,
  COMPANION_FILES,
  CONFIG_FILE,
  INDEX_FILE,
} from '../../formats/models/documents.js';
import { inCheckpoint } from '../contents/deepspeed/names.js';
import { type ArchiveFile, archiveFiles } from './archive.js';
import { collectBytes } from './collect-bytes.js';

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
 * Selects the files of a model from an archive. The first file that could belong to a model determines its folder;
 * files elsewhere or with other names are ignored.
 */
export class ModelFolder {
  readonly ignored: string[] = [];
  private readonly seen = new Set<string>();
  private readonly checkpoints = new CheckpointFolders();
  private folder: string | null = null;

  constructor(private readonly names: FolderNames) {}

  /** @throws (while it is read) ZerofleetError `model_archive_invalid`, `model_too_large`; errors of the body */
  async *files(body: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<FolderFile> {
    for await (const { path, bytes, content } of archiveFiles(body, limit)) {
      if (this.names.checkpoints && LATEST.has(path.at(-1) ?? '')) {
        if (bytes <= MAX_TAG_BYTES) this.checkpoints.name(path, await collectBytes(content, bytes));
        this.ignore(path);
        continue;
      }
      const state = this.names.checkpoints ? inCheckpoint(path) : null;
      if (state !== null) {
        if (!this.checkpoints.takes(state.root)) this.ignore(path);
        else yield { name: this.once(state.name), kind: 'checkpoint', bytes, content };
        continue;
      }
      const name = path.at(-1) as string;
      const kind = kindOf(name, this.names);
      const folder = path.slice(0, -1).join('/');
      if (kind !== null) this.folder ??= folder;
      if (kind === null || folder !== this.folder) this.ignore(path);
      else yield { name: this.once(name), kind, bytes, content };
    }
    this.checkpoints.finish();
  }

  private ignore(path: readonly string[]): void {
    if (this.ignored.length < MAX_IGNORED) this.ignored.push(path.join('/').slice(-SHOWN_NAME));
  }

  private once(name: string): string {
    if (this.seen.has(name)) throw invalidArchive(`the archive has ${name} twice`);
    this.seen.add(name);
    return name;
  }
}

/** Files in which DeepSpeed names a folder beside them: the newest checkpoint, and its universal form. */
const LATEST: ReadonlySet<string> = new Set(['latest', 'latest_universal']);
/** Longest path, and more names than a folder has. */
const MAX_TAG_BYTES = 4096;
const MAX_TAGS = 16;

/**
 * Chooses the folder of a DeepSpeed checkpoint: the first one, or the first one that `latest` names. Files are stored
 * as they arrive, so `latest` decides among several folders only if it is before them.
 */
class CheckpointFolders {
  private readonly named = new Set<string>();
  private chosen: string | null = null;
  private other: string | null = null;

  /** @param path of a file of LATEST @param tag its content */
  name(path: readonly string[], tag: Uint8Array): void {
    const [folder, below] = [path.slice(0, -1), Buffer.from(tag).toString('utf8').trim().split('/')];
    if (this.named.size < MAX_TAGS) this.named.add([...folder, ...below].join('/'));
  }

  /** Returns whether the files of a folder are those of the model. */
  takes(root: string): boolean {
    if (this.named.size === 0 || this.named.has(root)) this.chosen ??= root;
    if (root !== this.chosen) this.other ??= root;
    return root === this.chosen;
  }

  /** @throws ZerofleetError `model_archive_invalid` if the choice was wrong, or arbitrary */
  finish(): void {
    const { chosen, other, named } = this;
    if (named.size === 0 && other !== null)
      throw invalidArchive(`the archive has the checkpoints ${chosen} and ${other}; ${SEND_ONE}`);
    const [first = chosen ?? other] = named;
    const isRight = chosen === null ? other === null : named.size === 0 || named.has(chosen);
    if (!isRight)
      throw invalidArchive(
        `latest names the checkpoint ${first}, and the archive has ${chosen ?? other}; ${SEND_ONE}`,
      );
  }
}

const SEND_ONE = 'send one of them, or the file latest before the folder that it names';

function invalidArchive(message: string): ZerofleetError {
  return new ZerofleetError('model_archive_invalid', message);
}
