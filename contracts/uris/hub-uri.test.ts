import t from 'tap';
import { hubUriText, isSourceUri, parseHubUri, withoutCommit } from './hub-uri.js';

const COMMIT = '0123456789abcdef0123456789abcdef01234567';

t.test('URIs of the Hub and their parts', async (t) => {
  const CASES: [string, object, string?][] = [
    ['hf://a/b', { kind: 'model', repository: 'a/b', revision: 'main', path: '' }, 'hf://a/b@main'],
    ['hf://a/b@v1.0', { kind: 'model', repository: 'a/b', revision: 'v1.0', path: '' }],
    [
      'hf://a/b/sub/',
      { kind: 'model', repository: 'a/b', revision: 'main', path: 'sub' },
      'hf://a/b@main/sub',
    ],
    [
      'hf://a/b@refs/pr/12/x.json',
      { kind: 'model', repository: 'a/b', revision: 'refs/pr/12', path: 'x.json' },
    ],
    [
      `hf://datasets/a/b-c@${COMMIT}/data/train set.jsonl`,
      { kind: 'dataset', repository: 'a/b-c', revision: COMMIT, path: 'data/train set.jsonl' },
    ],
  ];
  for (const [text, parts, canonical = text] of CASES) {
    t.strictSame(parseHubUri(text), parts, text);
    t.equal(hubUriText(parseHubUri(text)), canonical);
  }
});

t.test('texts that are no URI of the Hub', async (t) => {
  const REFUSED: [string, RegExp][] = [
    ['s3://a/b', /hf:\/\/owner\/name/],
    ['hf://gpt2', /hf:\/\/owner\/name/],
    ['hf://spaces/a/b', /hf:\/\/owner\/name/],
    ['hf://a/..', /hf:\/\/owner\/name/],
    ['hf://user:password@host/b', /hf:\/\/owner\/name/],
    ['hf://a/b@', /revision/],
    ['hf://a/b@a..b', /revision/],
    ['hf://a/b@main/../x', /'\.\.' in its path/],
    ['hf://a/b@main/x%2fy', /not encoded/],
    ['hf://a/b@main/x\ny', /control character/],
  ];
  for (const [text, message] of REFUSED) t.throws(() => parseHubUri(text), { message }, text);
});

t.test('an URI without its commit', async (t) => {
  t.equal(withoutCommit(`hf://a/b@${COMMIT}/x`), 'hf://a/b/x');
  t.equal(withoutCommit(`hf://datasets/a/b@${COMMIT}`), 'hf://datasets/a/b');
  for (const other of ['hf://a/b@main', `s3://bucket/b@${COMMIT}`, `hf://a/b@${COMMIT}0`])
    t.equal(withoutCommit(other), other);
  t.ok(isSourceUri('hf://a/b') && isSourceUri('s3://a/b'));
  t.notOk(isSourceUri('https://a/b') || isSourceUri(null));
});
