/** The Hub as a source, against a server with its endpoints and a server of files on another origin. */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { type HubCall, HubStandIn, sendBytes } from '../testing/hub-stand-in.js';
import { HubSource } from './source.js';

const TOKEN = `hf_${'a'.repeat(30)}`;
const SMALL = Buffer.from('{"text": "small"}\n');
const LARGE = randomBytes(300_000);
const FILES = new Map([
  ['config.json', SMALL],
  ['model.safetensors', LARGE],
  ['data/a.jsonl', SMALL],
  ['data/b.jsonl', LARGE],
]);
/** Fast, with as many attempts as in production. */
const OPTIONS = { silenceMs: 20_000, retry: { attempts: 5, first_delay_ms: 1, max_delay_ms: 2 } };

async function start(t: Test, options: { token?: string; silenceMs?: number } = {}) {
  const hub = await HubStandIn.start();
  t.teardown(() => hub.close());
  const { token = null, ...rest } = options;
  const source = new HubSource({ endpoint: hub.endpoint, token: async () => token, ...OPTIONS, ...rest });
  const find = (uri: string) => source.find(uri, 'default');
  const read = async (uri: string) => {
    const pieces: Uint8Array[] = [];
    for await (const piece of (await find(uri)).read()) pieces.push(piece);
    return Buffer.concat(pieces);
  };
  return { hub, source, find, read };
}

/** Replaces the answers of the server of files. @param answer called with the number of the download, from 1 on */
function onDownload(
  hub: HubStandIn,
  answer: (nth: number, response: ServerResponse, call: HubCall) => boolean,
) {
  let downloads = 0;
  hub.answer = (call, response) => {
    if (call.server !== 'cdn') return false;
    downloads += 1;
    return answer(downloads, response, call);
  };
}

/** Sends the first bytes of a file and breaks the connection. */
function cutAfter(
  response: ServerResponse,
  bytes: Buffer,
  sent: number,
  headers = {},
  status = 200,
): boolean {
  response.writeHead(status, headers);
  response.write(bytes.subarray(0, sent), () => setTimeout(() => response.destroy(), 50));
  return true;
}

t.test('a folder is listed at the commit of its branch, page by page', async (t) => {
  const { hub, source } = await start(t);
  const commit = hub.commit('team/model', FILES);
  const folder = await source.list('hf://team/model', 'default');
  t.equal(folder.uri, `hf://team/model@${commit}`);
  t.strictSame(folder.names, ['config.json', 'model.safetensors']);
  const config = await folder.find('config.json');
  t.match(config, { uri: `${folder.uri}/config.json`, bytes: SMALL.length, etag: /^git:[0-9a-f]{40}$/ });
  t.match(await folder.find('model.safetensors'), { bytes: LARGE.length, etag: /^sha256:[0-9a-f]{64}$/ });
  await t.rejects(folder.find('other'), { code: 'dataset_source_missing' });
  const inside = await source.list('hf://team/model@main/data/', 'default');
  t.strictSame([inside.uri, inside.names], [`${folder.uri}/data`, ['a.jsonl', 'b.jsonl']]);
});

t.test('a branch that moves between listing and download', async (t) => {
  const { hub, find } = await start(t);
  const commit = hub.commit('datasets/team/chats', FILES);
  const object = await find('hf://datasets/team/chats/data/a.jsonl');
  hub.commit('datasets/team/chats', new Map([['data/a.jsonl', Buffer.from('moved')]]));
  t.equal(object.uri, `hf://datasets/team/chats@${commit}/data/a.jsonl`);
  const pieces: Uint8Array[] = [];
  for await (const piece of object.read()) pieces.push(piece);
  t.ok(Buffer.concat(pieces).equals(SMALL), 'the bytes of the listing');
  hub.answer = ({ path }, response) => {
    if (path.includes('/resolve/')) response.setHeader('x-repo-commit', 'f'.repeat(40));
    if (path.includes('/resolve/')) response.writeHead(200).end(SMALL);
    return path.includes('/resolve/');
  };
  const changed = (async () => {
    for await (const _ of object.read());
  })();
  await t.rejects(changed, { code: 'dataset_source_changed' });
});

t.test('the token goes to the Hub only', async (t) => {
  const { hub, read } = await start(t, { token: TOKEN });
  hub.commit('team/model', FILES);
  Object.assign(hub.repositories.get('team/model') ?? {}, { token: TOKEN });
  t.ok((await read('hf://team/model/model.safetensors')).equals(LARGE));
  const sent = (server: string) =>
    hub.calls.filter((call) => call.server === server).map(({ authorization }) => authorization);
  t.strictSame(new Set(sent('hub')), new Set([`Bearer ${TOKEN}`]));
  t.strictSame(sent('cdn'), [undefined]);
});

t.test('a server of files that redirects back to the Hub gets no token', async (t) => {
  const { hub, read } = await start(t, { token: TOKEN });
  const commit = hub.commit('team/model', FILES);
  const path = `/team/model/resolve/${commit}/config.json`;
  onDownload(hub, (_, response) => {
    response.writeHead(302, { location: `${hub.endpoint}${path}` }).end();
    return true;
  });
  await t.rejects(read('hf://team/model/model.safetensors'), { code: 'dataset_source_corrupt' });
  t.equal(hub.calls.at(-1)?.path, path);
  t.equal(hub.calls.at(-1)?.authorization, undefined);
});

t.test('a broken connection continues at the byte where it broke', async (t) => {
  const { hub, read } = await start(t);
  hub.commit('team/model', FILES);
  onDownload(
    hub,
    (nth, response) =>
      nth < 3 &&
      cutAfter(
        response,
        LARGE.subarray(nth === 1 ? 0 : 100_000),
        100_000,
        {
          'content-length': LARGE.length - (nth === 1 ? 0 : 100_000),
          ...(nth === 2 && { 'content-range': `bytes 100000-299999/300000` }),
        },
        nth === 2 ? 206 : 200,
      ),
  );
  t.ok((await read('hf://team/model/model.safetensors')).equals(LARGE));
  t.strictSame(hub.downloads, [
    'model.safetensors',
    'model.safetensors bytes=100000-',
    'model.safetensors bytes=200000-',
  ]);
});

t.test('a server without ranges sends the whole file again', async (t) => {
  const { hub, read } = await start(t);
  hub.commit('team/model', FILES);
  onDownload(hub, (nth, response) => {
    if (nth === 1) return cutAfter(response, LARGE, 123_456);
    sendBytes(response, LARGE, undefined);
    return true;
  });
  t.ok((await read('hf://team/model/model.safetensors')).equals(LARGE));
  t.equal(hub.downloads.length, 2);
});

t.test('a connection that breaks behind the last byte needs no range, which 416 would answer', async (t) => {
  const { hub, read } = await start(t);
  hub.commit('team/model', FILES);
  onDownload(hub, (_, response) => cutAfter(response, LARGE, LARGE.length));
  t.ok((await read('hf://team/model/model.safetensors')).equals(LARGE));
  t.strictSame(hub.downloads, ['model.safetensors']);
});

t.test('bytes that are not those of the listing', async (t) => {
  const { hub, read } = await start(t);
  hub.commit('team/model', FILES);
  const uri = 'hf://team/model/model.safetensors';
  const served = (bytes: Buffer, headers?: object) =>
    onDownload(hub, (_, response) => {
      response.writeHead(200, { ...headers }).end(bytes);
      return true;
    });
  const WRONG: [Buffer, object, RegExp][] = [
    [Buffer.concat([LARGE.subarray(1), Buffer.of(0)]), { 'content-length': LARGE.length }, /hash/],
    [LARGE.subarray(1), { 'content-length': LARGE.length - 1 }, /299999 bytes, and its listing 300000/],
    [Buffer.concat([LARGE, Buffer.of(0)]), {}, /longer than/],
  ];
  for (const [bytes, headers, message] of WRONG) {
    served(bytes, headers);
    await t.rejects(read(uri), { code: 'dataset_source_corrupt', message });
  }
  onDownload(hub, (nth, response) => {
    if (nth === 1) return cutAfter(response, LARGE, 1000);
    sendBytes(response, LARGE.subarray(0, 1000), 'bytes=1000-');
    return true;
  });
  await t.rejects(read(uri), { code: 'dataset_source_corrupt', message: /shorter than/ });
  hub.answer = ({ path }, response) => {
    if (path.includes('/resolve/')) sendBytes(response, Buffer.from('{"text": "Small"}\n'), undefined);
    return path.includes('/resolve/');
  };
  await t.rejects(read('hf://team/model/config.json'), { code: 'dataset_source_corrupt', message: /hash/ });
});

t.test('a body that never gets further, and a silent server', async (t) => {
  const { hub, read } = await start(t, { silenceMs: 300 });
  hub.commit('team/model', FILES);
  onDownload(hub, (nth, response, { range }) => {
    if (nth === 1) return cutAfter(response, LARGE, 1000);
    response.writeHead(206, { 'content-range': `bytes 1000-299999/${LARGE.length}` });
    response.write('', () => response.destroy());
    return range !== undefined;
  });
  await t.rejects(read('hf://team/model/model.safetensors'), {
    code: 'hub_unavailable',
    message: /ends at byte 1000 of 300000/,
  });
  hub.answer = () => true;
  await t.rejects(read('hf://team/model/model.safetensors'), { code: 'hub_unavailable', message: /0\.3 s/ });
});

t.test('repositories that may not be read', async (t) => {
  const guest = await start(t);
  const member = await start(t, { token: TOKEN });
  for (const { hub } of [guest, member]) {
    hub.commit('team/model', FILES);
    hub.commit('team/private', FILES);
    hub.commit('team/gated', FILES);
    Object.assign(hub.repositories.get('team/private') ?? {}, { token: 'hf_another' });
    Object.assign(hub.repositories.get('team/gated') ?? {}, { token: TOKEN, gated: true });
  }
  const REFUSED: [typeof guest, string, string, RegExp][] = [
    [guest, 'hf://team/nothing', 'dataset_source_denied', /no public .*PUT \/v1\/hub-token/],
    [guest, 'hf://team/private', 'dataset_source_denied', /no public/],
    [
      guest,
      'hf://team/gated',
      'dataset_source_denied',
      /accept its conditions at .*\/team\/gated, then set the token/,
    ],
    [member, 'hf://team/gated', 'dataset_source_denied', /accept .* with the account of the project's token/],
    [member, 'hf://team/private', 'dataset_source_denied', /the project's token may not read/],
    [member, 'hf://team/nothing', 'dataset_source_missing', /there is no/],
    [guest, 'hf://team/model@v9', 'dataset_source_missing', /no such branch, tag or commit/],
    [guest, 'hf://team/model@main/none/a', 'dataset_source_missing', /the repository has no/],
  ];
  for (const [{ read }, uri, code, message] of REFUSED) {
    const file = uri.includes('none') ? uri : `${uri.includes('@') ? uri : `${uri}@main`}/config.json`;
    await t.rejects(read(file), { code, message }, uri);
  }
  for (const { message } of [
    await member.read('hf://team/private/config.json').catch((error: Error) => error),
  ] as Error[])
    t.notMatch(message, TOKEN);
  for (const uri of ['hf://team', 'hf://team/model@../x', 'hf://spaces/team/model'])
    await t.rejects(guest.find(uri), { code: 'invalid_parameter' }, uri);
});

t.test('limits of the Hub are waited for, and named when they last', async (t) => {
  const { hub, read } = await start(t);
  hub.commit('team/model', FILES);
  let limited = 2;
  let after = '0';
  hub.answer = ({ path }, response) => {
    if (!path.includes('/revision/') || limited === 0) return false;
    limited -= 1;
    response.writeHead(429, { 'retry-after': after }).end();
    return true;
  };
  t.ok((await read('hf://team/model/config.json')).equals(SMALL));
  t.equal(limited, 0);
  limited = Number.POSITIVE_INFINITY;
  after = '300';
  hub.calls.length = 0;
  await t.rejects(read('hf://team/model/config.json'), { code: 'hub_throttled', message: /in 300 s/ });
  t.equal(hub.calls.length, 1, 'a long wait is left to the client');
});

t.test('answers that no hub sends', async (t) => {
  const { hub, find } = await start(t);
  hub.commit('team/model', FILES);
  const ODD: [string, (response: ServerResponse) => void, RegExp][] = [
    ['/revision/', (response) => response.end('{"sha": "main"}'), /no commit/],
    ['/revision/', (response) => response.end('{'), /cannot be read/],
    ['/tree/', (response) => response.end('{}'), /no list of files/],
    [
      '/revision/',
      (response) => response.writeHead(302, { location: '/api/models/team/model/revision/main' }).end(),
      /more than 5/,
    ],
    [
      '/revision/',
      (response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
      /not https/,
    ],
    ['/revision/', (response) => response.writeHead(500).end(), /status 500/],
  ];
  for (const [part, send, message] of ODD) {
    hub.answer = ({ path }, response) => {
      if (path.includes(part)) send(response);
      return path.includes(part);
    };
    await t.rejects(find('hf://team/model/config.json'), { code: 'hub_unavailable', message });
  }
  hub.answer = () => false;
  hub.pageSize = 20_000;
  const many = Array.from({ length: 10_001 }, (_, at): [string, Buffer] => [`file-${at}`, SMALL]);
  hub.commit('team/many', new Map(many));
  await t.rejects(find('hf://team/many/other'), { code: 'model_archive_invalid', message: /10000/ });
});
