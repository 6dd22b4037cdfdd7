import t from 'tap';
import { documentText, jsonObject } from './read-document.js';

t.test('a text of a model is UTF-8 without a byte order mark', async (t) => {
  t.equal(
    documentText('config.json', Buffer.from('{"a": "é\uFEFF"}'), 'model_config_invalid'),
    '{"a": "é\uFEFF"}',
  );
  for (const [bytes, message] of [
    [Buffer.from('\uFEFF{}'), 'config.json begins with a byte order mark; save it as UTF-8 without one'],
    [Buffer.from([0x7b, 0xff, 0x7d]), 'config.json is not UTF-8'],
    [Buffer.from('\uFEFF{}', 'utf16le'), 'config.json is not UTF-8'],
  ] as const)
    t.throws(() => documentText('config.json', bytes, 'model_config_invalid'), {
      code: 'model_config_invalid',
      message,
      details: { file: 'config.json' },
    });
});

t.test('its JSON is an object', async (t) => {
  t.same(jsonObject('x.json', '{"a": [1]}', 'tokenizer_invalid'), { a: [1] });
  for (const [text, message] of [
    ['{', /^x.json is not JSON: ./],
    ['\uFEFF{}', /^x.json is not JSON: ./],
    ['[]', 'x.json is not a JSON object'],
    ['null', 'x.json is not a JSON object'],
  ] as const)
    t.throws(() => jsonObject('x.json', text, 'tokenizer_invalid'), { code: 'tokenizer_invalid', message });
});
