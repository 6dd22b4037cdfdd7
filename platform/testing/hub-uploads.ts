/** Uploads to the stand-in of the Hub: repositories, LFS and commits. */
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { HubCall, HubStandIn } from './hub-stand-in.js';

/** A line of a commit. */
interface CommitLine {
  key: 'header' | 'file' | 'lfsFile';
  value: { path: string; content: string; encoding: string; oid: string; summary: string };
}

/** Accepts uploads with a token. @returns titles of the commits */
export function acceptUploads(hub: HubStandIn, token: string): string[] {
  const titles: string[] = [];
  const stored = new Map<string, Buffer>();
  const json = (response: ServerResponse, document: object) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
    return true;
  };
  const answers: [
    RegExp,
    (call: HubCall, response: ServerResponse, repository: string) => Promise<boolean>,
  ][] = [
    [
      /^GET \/api\/models\/([^/]+\/[^/]+)\?/,
      async (_, response, name) => hub.repositories.has(name) && json(response, { id: name }),
    ],
    [
      /^POST \/api\/repos\/create$/,
      async ({ body }, response) => {
        const { organization, name } = JSON.parse(String(await body())) as Record<string, string>;
        hub.repositories.set(`${organization}/${name}`, { commits: new Map(), revisions: new Map() });
        return json(response, { url: `${hub.endpoint}/${organization}/${name}`, id: name });
      },
    ],
    [
      /^POST \/api\/models\/([^/]+\/[^/]+)\/preupload\/main$/,
      async ({ body }, response) => {
        const { files } = JSON.parse(String(await body())) as { files: { path: string }[] };
        const modeOf = (path: string) => (path.endsWith('.safetensors') ? 'lfs' : 'regular');
        return json(response, { files: files.map(({ path }) => ({ path, uploadMode: modeOf(path) })) });
      },
    ],
    [
      /^POST \/([^/]+\/[^/]+)\.git\/info\/lfs\/objects\/batch$/,
      async ({ body }, response) => {
        const { objects } = JSON.parse(String(await body())) as { objects: { oid: string; size: number }[] };
        const actionsOf = (oid: string) => ({ upload: { href: `${hub.files}/lfs/${oid}` } });
        return json(response, {
          transfer: 'basic',
          objects: objects.map((object) => ({ ...object, actions: actionsOf(object.oid) })),
        });
      },
    ],
    [
      /^PUT \/lfs\/([0-9a-f]{64})$/,
      async ({ body }, response, oid) => {
        const bytes = await body();
        const isRight = createHash('sha256').update(bytes).digest('hex') === oid;
        if (isRight) stored.set(oid, bytes);
        response.writeHead(isRight ? 200 : 400).end();
        return true;
      },
    ],
    [
      /^POST \/api\/models\/([^/]+\/[^/]+)\/commit\/main$/,
      async ({ body }, response, name) => {
        const lines = String(await body()).split('\n');
        const files = new Map<string, Buffer>();
        for (const { key, value } of lines.map((line) => JSON.parse(line) as CommitLine)) {
          if (key === 'header') titles.push(value.summary);
          else if (key === 'file')
            files.set(value.path, Buffer.from(value.content, value.encoding as 'base64'));
          else files.set(value.path, stored.get(value.oid) ?? Buffer.alloc(0));
        }
        const commitOid = hub.commit(name, files);
        return json(response, {
          commitOid,
          commitUrl: `${hub.endpoint}/${name}/commit/${commitOid}`,
          hookOutput: '',
        });
      },
    ],
  ];
  hub.answer = async (call, response) => {
    for (const [pattern, answer] of answers) {
      const found = pattern.exec(`${call.method} ${call.path}`);
      if (found === null) continue;
      if (call.server === 'cdn' || call.authorization === `Bearer ${token}`)
        return answer(call, response, found[1] ?? '');
      response.writeHead(401).end('{"error": "Invalid credentials"}');
      return true;
    }
    return false;
  };
  return titles;
}
