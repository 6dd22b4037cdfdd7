import t from 'tap';
import { redactorOf, redactText } from './redact.js';

t.test('texts that look like credentials', async (t) => {
  const cases: [string, string][] = [
    [
      'redis://user:pw@host/0 and https://host:80/a@b',
      'redis://user:[redacted]@host/0 and https://host:80/a@b',
    ],
    ['Authorization: Bearer abc.def', 'Authorization: Bearer [redacted]'],
    [`key zf_${'x'.repeat(43)}.`, 'key zf_[redacted].'],
    ['whsec_AAAABBBBCCCC==', 'whsec_[redacted]'],
    ['id AKIAIOSFODNN7EXAMPLE', 'id AKIA[redacted]'],
    ['aws_secret_access_key = wJalrXUtnFEMI/K7MDENG', 'aws_secret_access_key = [redacted]'],
    ['AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG', 'AWS_SECRET_ACCESS_KEY=[redacted]'],
    ["{'secretAccessKey': 'wJalrXUtnFEMI'}", "{'secretAccessKey': '[redacted]'}"],
    ['{"session_token":"AQoDYXdzEJr1"}', '{"session_token":"[redacted]"}'],
    ['password: hunter2hunter2, user: me', 'password: [redacted], user: me'],
    [
      'GET /k?X-Amz-Credential=AK%2F1&X-Amz-Signature=ab12',
      'GET /k?X-Amz-Credential=[redacted]&X-Amz-Signature=[redacted]',
    ],
    [`hf_${'a'.repeat(34)} ghp_${'b'.repeat(36)}`, 'hf_[redacted] ghp_[redacted]'],
  ];
  for (const [text, expected] of cases) t.equal(redactText(text), expected);
});

t.test('other texts stay', async (t) => {
  for (const text of [
    'unix:///run/x.sock',
    'step 12 of 300 loss=2.31 tokens_per_second=123456789 num_tokens=123456789',
    'tokenizer: bytes, max_tokens: 1000000000',
    'sha256:0123456789abcdef0123456789abcdef',
    'zf_short',
    'the password is asked for',
  ])
    t.equal(redactText(text), text);
});

t.test('values of secret environment variables, in any position', async (t) => {
  const redact = redactorOf({
    AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI',
    MY_TOKEN: 'line-one-1\nline-two-2',
    SHORT_SECRET: 'abc',
    ZEROFLEET_REDIS_URL: 'redis://:p%40ssword1@host:1/0',
    PATH: '/usr/bin:/usr/local/bin',
    EMPTY_SECRET: '',
    LONGER_SECRET: 'wJalrXUtnFEMI-and-more',
  });
  t.equal(redact('got wJalrXUtnFEMI!'), 'got [redacted]!');
  t.equal(redact('wJalrXUtnFEMI-and-more'), '[redacted]');
  t.equal(redact('line-two-2'), '[redacted]');
  t.equal(redact('abc /usr/bin:/usr/local/bin'), 'abc /usr/bin:/usr/local/bin');
  t.equal(redact('auth p@ssword1 p%40ssword1'), 'auth [redacted] [redacted]');
});

t.test('no text takes long', async (t) => {
  const started = performance.now();
  for (const piece of [
    'a',
    'a:',
    'secret',
    'secret=',
    'a://',
    'https://a:',
    'bearer ',
    'zf_',
    'X-Amz-Signature=',
    ' ',
  ])
    redactText(piece.repeat(Math.ceil(8_000 / piece.length)));
  t.ok(performance.now() - started < 1_000, `${performance.now() - started} ms`);
});
