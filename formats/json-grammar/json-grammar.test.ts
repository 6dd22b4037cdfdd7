import { isDeepStrictEqual } from 'node:util';
import { Ajv } from 'ajv';
import t from 'tap';
import { ConstrainedAnswer, Grammars } from './constraint.js';
import { grammarOf } from './grammar.js';
import { DEAD, Matcher } from './matcher.js';
import { SCHEMAS } from './testing/schemas.js';
import { printable, TOKENIZERS, tableOf } from './testing/tokenizers.js';
import { vocabularyOf } from './token-bytes.js';
import { isAllowed, type Vocabulary } from './vocabulary.js';

function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function accepts(schema: unknown, text: string): boolean {
  const matcher = new Matcher(grammarOf(schema));
  let state = matcher.stateOf(matcher.start);
  for (const byte of Buffer.from(text)) {
    if (state === DEAD) return false;
    state = matcher.next(state, byte);
  }
  return state !== DEAD && matcher.isComplete(state);
}

const ajv = new Ajv({ strict: false });

for (const [name, { schema, valid, invalid }] of Object.entries(SCHEMAS)) {
  t.test(`${name}: values that satisfy the schema are texts of its grammar, others are not`, async (t) => {
    const validate = ajv.compile(schema);
    for (const value of valid) {
      t.ok(validate(value), JSON.stringify(value));
      // Values of an enum have one form.
      for (const indent of name === 'values' ? [undefined] : [undefined, 2, '\t'])
        t.ok(accepts(schema, JSON.stringify(value, null, indent)), JSON.stringify(value, null, indent));
    }
    for (const value of invalid) {
      if (typeof value === 'object' && value !== null && !('other' in value)) t.notOk(validate(value));
      t.notOk(accepts(schema, JSON.stringify(value)), JSON.stringify(value));
    }
    const text = JSON.stringify(valid[0]);
    for (let length = 0; length < text.length; length++) t.notOk(accepts(schema, text.slice(0, length)));
    t.notOk(accepts(schema, `${text} `), 'nothing follows');
  });
}

const HEAD = [0, 5, 0];

for (const [tokenizer, { table, size }] of Object.entries(TOKENIZERS)) {
  t.test(`${tokenizer}: any allowed tokens make a text that satisfies the schema`, async (t) => {
    const vocabulary = vocabularyOf(table, size);
    const grammars = new Grammars(vocabulary);
    for (const [name, { schema }] of Object.entries(SCHEMAS)) {
      const validate = ajv.compile(schema);
      const constraint = { choices: [{ head: HEAD, schema: JSON.stringify(schema) }] };
      const used = new Set<number>();
      for (let seed = 1; seed <= 12; seed++) {
        const answer = new ConstrainedAnswer(constraint, grammars);
        const steps = randomWalk(answer, vocabulary, size, randomFrom(seed));
        t.ok(answer.isComplete, `${name}: it ends`);
        t.ok(
          answer.allowed().every((word) => word === 0),
          'nothing follows',
        );
        const again = new ConstrainedAnswer(constraint, new Grammars(vocabulary));
        const isSame = steps.every(({ token, mask }, index) => {
          const same = index % 8 !== 0 || isDeepStrictEqual(again.allowed(), mask);
          again.push(token);
          used.add(token);
          return same;
        });
        t.ok(isSame, 'a mask is a function of the tokens');
        t.same(
          steps.slice(0, HEAD.length).map(({ token }) => token),
          HEAD,
        );
        t.notOk(
          table !== null && steps.slice(HEAD.length).some(({ mask }) => isAllowed(mask, 0)),
          'special tokens are not allowed',
        );
        const text = textOf(vocabulary, steps.slice(HEAD.length));
        t.ok(validate(JSON.parse(text)), `${name}: ${text}`);
      }
      t.ok(used.size > 10, 'the texts differ');
    }
  });
}

interface Step {
  token: number;
  mask: Uint32Array;
}

function randomWalk(
  answer: ConstrainedAnswer,
  vocabulary: Vocabulary,
  size: number,
  random: (below: number) => number,
): Step[] {
  const steps: Step[] = [];
  while (!answer.isComplete && steps.length < 4000) {
    const mask = answer.allowed();
    const allowed = [...Array(size).keys()].filter((token) => isAllowed(mask, token));
    const token = chosen(allowed, (id) => vocabulary.bytesOf(id), steps.length < 40, random);
    steps.push({ token, mask });
    answer.push(token);
  }
  return steps;
}

function textOf(vocabulary: Vocabulary, steps: readonly Step[]): string {
  const bytes = Buffer.concat(steps.map(({ token }) => vocabulary.bytesOf(token)));
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
}

/** Returns any token, or later one that leads to the end. */
function chosen(
  allowed: readonly number[],
  bytesOf: (token: number) => Uint8Array,
  isFree: boolean,
  random: (below: number) => number,
): number {
  const ending = ['"', '}', ']', ','].map((end) =>
    allowed.filter((token) => Buffer.from(bytesOf(token)).toString() === end),
  );
  const [first] = ending.find((tokens) => tokens.length > 0) ?? [];
  if (!isFree && first !== undefined) return first;
  const dark = allowed.filter((token) => !/^\s*$/.test(Buffer.from(bytesOf(token)).toString()));
  const from = !isFree && dark.length > 0 ? dark : allowed;
  return from[random(from.length)] as number;
}

t.test('of several functions, the drawn tokens decide', async (t) => {
  const grammars = new Grammars(vocabularyOf(null, 256));
  const head = (text: string) => [...Buffer.from(text)];
  const constraint = {
    choices: [
      {
        head: head('add'),
        schema: '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}',
      },
      { head: head('ad'), schema: '{"type":"object","additionalProperties":{"type":"null"}}' },
    ],
  };
  const after = (text: string) => {
    const answer = new ConstrainedAnswer(constraint, grammars);
    for (const token of head(text)) answer.push(token);
    const mask = answer.allowed();
    const allowed = [...Array(256).keys()].filter((token) => isAllowed(mask, token));
    return { text: Buffer.from(allowed).toString(), complete: answer.isComplete };
  };
  t.same(after('a'), { text: 'd', complete: false });
  t.same(after('ad'), { text: '\n d{', complete: false });
  t.same(after('ad{}'), { text: '', complete: true });
  t.same(after('add{'), { text: '\n "', complete: false });
  t.same(after('add{"'), { text: 'a', complete: false });
  t.same(after('add{"a":1}'), { text: '', complete: true });
  t.same(after('add{}'), { text: '', complete: false });
});

t.test('long texts stay a function of their tokens while states are given up', async (t) => {
  const grammars = new Grammars(vocabularyOf(null, 256));
  const schema = '{"type":"object","properties":{"s":{"type":"string","maxLength":6000}},"required":["s"]}';
  const answer = new ConstrainedAnswer({ choices: [{ head: [], schema }] }, grammars);
  for (const byte of Buffer.from('{"s":"')) answer.push(byte);
  let numAllowed = 0;
  for (let length = 0; length < 6000; length++) {
    numAllowed += isAllowed(answer.allowed(), 0x61) ? 1 : 0;
    answer.push(0x61);
  }
  t.equal(numAllowed, 6000);
  const rest = answer.allowed();
  t.same(
    [...Array(256).keys()].filter((token) => isAllowed(rest, token)),
    [0x22],
  );
});

t.test('schemas with very many readings of a text cost no more than others', async (t) => {
  const nested = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/x' } },
    required: ['a'],
    $defs: {
      x: {
        anyOf: ['b', 'c', 'd'].map((other) => ({
          type: 'object',
          properties: {
            a: { anyOf: [{ $ref: '#/$defs/x' }, { type: 'string' }] },
            [other]: { type: 'null' },
          },
          required: ['a'],
        })),
      },
    },
  };
  const text = `${'{"a":'.repeat(60)}"x"${'}'.repeat(60)}`;
  t.ok(accepts(nested, text));
});

t.test('a choice of itself is no further value', async (t) => {
  const loop = { anyOf: [{ $ref: '#/$defs/loop' }, { const: 'end' }] };
  const schema = { type: 'object', properties: { p: { $ref: '#/$defs/loop' } }, $defs: { loop } };
  t.ok(accepts(schema, '{"p": "end"}'));
  t.notOk(accepts(schema, '{"p": 1}'));
});

t.test('tokenizers that cannot write every text are refused', async (t) => {
  const letters = tableOf([...'abc'], { type: 'Fuse' });
  t.throws(() => vocabularyOf(letters, 4), { code: 'tokenizer_invalid', message: /no token for " !/ });
  const suffixed = tableOf(
    printable.flatMap((character) => [character, `${character}</w>`]),
    { type: 'BPEDecoder', suffix: '</w>' },
  );
  t.throws(() => vocabularyOf(suffixed, 300), { code: 'tokenizer_invalid', message: /depends on the next/ });
});
