/**
 * Sanitizes untrusted text for a terminal and for line-based readers. Escape sequences are removed. Every other
 * character that moves the cursor, ends a line or changes the direction of writing becomes U+FFFD. Tabs stay.
 */
const ESC = String.fromCharCode(0x1b);
const BELL = String.fromCharCode(0x07);

/** Terminal commands: CSI (colours, cursor), OSC (titles, links) and the short ones. */
const ESCAPE_SEQUENCES = new RegExp(
  [
    `(?:${ESC}\\[|\u009b)[0-?]*[ -/]*[@-~]`,
    `(?:${ESC}\\]|\u009d)[^${BELL}${ESC}]*(?:${BELL}|${ESC}\\\\)`,
    `${ESC}[ -/]*[0-Z\\\\^-~]`,
  ].join('|'),
  'g',
);
const CONTROLS = /(?!\t)[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/gu;

export function plainText(text: string): string {
  return text.replace(ESCAPE_SEQUENCES, '').replace(CONTROLS, '\ufffd');
}
