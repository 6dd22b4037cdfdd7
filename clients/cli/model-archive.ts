import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import tar from 'tar-stream';
import { CliError, EXIT } from './context.js';

interface FolderFile {
  /** Path below the folder, with `/` as separator. */
  name: string;
  size: number;
}

/**
 * Tar archive of a model's folder, created while it is read. Links are followed, because folders of a download cache
 * contain them; dotfiles are ignored.
 * @throws CliError for a folder without files
 */
export async function archiveOf(dir: string): Promise<ReadableStream<Uint8Array>> {
  const files = await filesBelow(dir);
  if (files.length === 0) throw new CliError(`${dir} has no files`, EXIT.usage);
  const pack = tar.pack();
  addAll(pack, dir, files).catch((error: Error) => pack.destroy(error));
  return Readable.toWeb(Readable.from(pack)) as ReadableStream<Uint8Array>;
}

async function addAll(pack: tar.Pack, dir: string, files: readonly FolderFile[]): Promise<void> {
  for (const { name, size } of files)
    await pipeline(createReadStream(join(dir, name)), pack.entry({ name, size }));
  pack.finalize();
}

/** Files of a folder precede files of its subfolders: the first file determines the model's folder. */
async function filesBelow(dir: string, below = ''): Promise<FolderFile[]> {
  const names = (await readdir(join(dir, below))).filter((name) => !name.startsWith('.')).sort();
  const files: FolderFile[] = [];
  const inner: FolderFile[] = [];
  for (const name of names.map((each) => (below === '' ? each : `${below}/${each}`))) {
    const about = await stat(join(dir, name));
    if (about.isDirectory()) inner.push(...(await filesBelow(dir, name)));
    else files.push({ name, size: about.size });
  }
  return [...files, ...inner];
}
