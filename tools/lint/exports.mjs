import { readFileSync } from 'node:fs';
import { listFiles } from '../bootstrap/fingerprint.mjs';
import { inRoot } from '../bootstrap/paths.mjs';

const EXPORT =
  /^export (?:default )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) +([\w$]+)/gm;
const isSource = (path) =>
  path.endsWith('/') ? !/(^|\/)(generated|build|node_modules)\/$/.test(path) : /\.(tsx?|mjs)$/.test(path);

/**
 * Finds exports whose name appears in no other file.
 * @param {Map<string, string>} texts contents of all files, by path
 * @returns {string[]} one line per export
 */
export function unusedExports(texts) {
  const numFiles = new Map();
  for (const text of texts.values())
    for (const word of new Set(text.match(/[\w$]+/g))) numFiles.set(word, (numFiles.get(word) ?? 0) + 1);
  return [...texts].flatMap(([path, text]) =>
    Array.from(text.matchAll(EXPORT), ([, name]) => name)
      .filter((name) => numFiles.get(name) === 1)
      .map((name) => `${path} exports ${name}, and no other file names it: remove the word export`),
  );
}

/** @param {readonly string[]} rooms folders whose files may import each other */
export function exportProblems(rooms) {
  const files = listFiles(rooms, isSource);
  return unusedExports(new Map(files.map((file) => [file, readFileSync(inRoot(file), 'utf8')])));
}
