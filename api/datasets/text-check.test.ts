import t from 'tap';
import { TextCheck } from './text-check.js';

t.test('a text is one document with one token per byte, independently of chunk borders', async (t) => {
  const bytes = Buffer.from('Grüße, 世界 🌍');
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const text = new TextCheck();
    text.push(bytes.subarray(0, cut));
    text.push(bytes.subarray(cut));
    t.same(text.end(), {
      num_documents: 1,
      num_chats: 0,
      num_preferences: 0,
      num_labelled: 0,
      num_prompts: 0,
      num_tokens: bytes.length,
      max_token: null,
    });
  }
});

t.test('invalid UTF-8 is refused', async (t) => {
  t.throws(() => new TextCheck().push(Uint8Array.of(0x61, 0xff)), {
    code: 'dataset_not_utf8',
    message: /at byte 1$/,
  });
  t.throws(() => new TextCheck().end(), { code: 'dataset_empty' });
  const cut = new TextCheck();
  cut.push(Buffer.from('世').subarray(0, 2));
  t.throws(() => cut.end(), { code: 'dataset_not_utf8', details: { position: 0 } });
});
