import t from 'tap';
import { BODY_LIMITS, bodyText, refuseUnpairedSurrogates } from './json-body.js';

const refusal = { code: 'malformed_json' };

t.test('oversized bodies are refused before they are parsed', async (t) => {
  const text = '{"a":["ä"]}';
  t.equal(bodyText(Buffer.from(text)), text);
  const refused: [Buffer, RegExp][] = [
    [Buffer.from('['.repeat(BODY_LIMITS.depth + 1)), /nested deeper than 100 levels/],
    [Buffer.from(`[${'[],'.repeat(BODY_LIMITS.values)}1]`), /more than 5000 values/],
    [Buffer.from(text, 'latin1'), /not UTF-8/],
    [Buffer.from('eda080', 'hex'), /not UTF-8/],
  ];
  for (const [bytes, message] of refused) t.throws(() => bodyText(bytes), { ...refusal, message });
});

t.test('an unpaired surrogate is refused', async (t) => {
  for (const text of [
    '"\\ud800"',
    '"a\\uDC00b"',
    '{"a":["\\ude00\\ud83d"]}',
    '{"\\ud800":1}',
    '"\\\\\\ud800"',
  ])
    t.throws(() => refuseUnpairedSurrogates(text, JSON.parse(text)), refusal, text);
  for (const text of ['"\\ud83d\\ude00"', '"\\\\ud800"', '"\\\\\\\\ud800"', '{"\\uD83D\\uDE00":"\\u00e4"}'])
    t.doesNotThrow(() => refuseUnpairedSurrogates(text, JSON.parse(text)), text);
});
