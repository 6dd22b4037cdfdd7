import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import tar from 'tar-stream';
import { collect } from '../../formats/testing/byte-source.js';
import { projectRoot } from '../../platform/process/root.js';

const PACKED = {
  deepspeed: 'api/contents/deepspeed/golden/deepspeed.tar.br',
  modes: 'api/contents/deepspeed/golden/modes.tar.br',
};

/** Files written by DeepSpeed: api/contents/deepspeed/golden/make_golden.py. */
export async function deepSpeedGolden(name: keyof typeof PACKED): Promise<Map<string, Buffer>> {
  const packed = readFileSync(join(projectRoot(), PACKED[name]));
  const files = new Map<string, Buffer>();
  const extract = tar.extract();
  extract.end(brotliDecompressSync(packed));
  for await (const entry of extract) files.set(entry.header.name, await collect(entry));
  return files;
}

/** Files of one folder, by name. */
export function inFolder(files: ReadonlyMap<string, Buffer>, folder: string): Map<string, Buffer> {
  const own = [...files].filter(([name]) => name.startsWith(`${folder}/`));
  return new Map(own.map(([name, content]) => [name.slice(folder.length + 1), content]));
}
