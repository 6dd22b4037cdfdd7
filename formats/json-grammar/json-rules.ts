/** Rules of JSON that all grammars share. */
import type { Automaton, Rule } from './automaton.js';

/** Spaces and tabs behind a line feed. */
const MAX_INDENT = 40;
/** Digits of an integer and of a fraction. */
const MAX_DIGITS = 20;
const DIGITS = '0123456789';

/** White space between two parts: nothing, a space, or a line feed and an indent. */
export function whiteSpace(automaton: Automaton): Rule {
  const rule = automaton.rule();
  automaton.skip(rule.start, rule.end);
  automaton.oneOf(rule.start, ' ', rule.end);
  let state = automaton.oneOf(rule.start, '\n');
  for (let i = 0; i < MAX_INDENT; i++) {
    automaton.skip(state, rule.end);
    state = automaton.oneOf(state, ' \t');
  }
  automaton.skip(state, rule.end);
  return rule;
}

/** Sequences of UTF-8 of several bytes: the range of the first and of the second byte, and the number of others. */
const UTF8: readonly (readonly [number, number, number, number, number])[] = [
  [0xc2, 0xdf, 0x80, 0xbf, 0],
  [0xe0, 0xe0, 0xa0, 0xbf, 1],
  [0xe1, 0xec, 0x80, 0xbf, 1],
  [0xed, 0xed, 0x80, 0x9f, 1],
  [0xee, 0xef, 0x80, 0xbf, 1],
  [0xf0, 0xf0, 0x90, 0xbf, 2],
  [0xf1, 0xf3, 0x80, 0xbf, 2],
  [0xf4, 0xf4, 0x80, 0x8f, 2],
];

/** A character of a string: itself in UTF-8, or an escape. Pairs of surrogates are one character. */
export function character(automaton: Automaton): Rule {
  const rule = automaton.rule();
  const { start, end } = rule;
  automaton.range(start, 0x20, 0x21, end);
  automaton.range(start, 0x23, 0x5b, end);
  automaton.range(start, 0x5d, 0x7f, end);
  for (const [first, last, second, lastSecond, others] of UTF8) {
    let state = automaton.range(start, first, last);
    state = automaton.range(state, second, lastSecond, others === 0 ? end : undefined);
    for (let left = others; left > 0; left--)
      state = automaton.range(state, 0x80, 0xbf, left === 1 ? end : undefined);
  }
  const escaped = automaton.oneOf(start, '\\');
  automaton.oneOf(escaped, '"\\/bfnrt', end);
  const unicode = automaton.oneOf(escaped, 'u');
  hex(automaton, automaton.oneOf(unicode, '0123456789abcefABCEF'), 3, end);
  const d = automaton.oneOf(unicode, 'dD');
  hex(automaton, automaton.oneOf(d, '01234567'), 2, end);
  const high = hex(automaton, automaton.oneOf(d, '89abAB'), 2);
  const low = automaton.oneOf(automaton.oneOf(automaton.oneOf(high, '\\'), 'u'), 'dD');
  hex(automaton, automaton.oneOf(low, 'cdefCDEF'), 2, end);
  return rule;
}

function hex(automaton: Automaton, from: number, count: number, end?: number): number {
  let state = from;
  for (let left = count; left > 0; left--)
    state = automaton.oneOf(state, '0123456789abcdefABCDEF', left === 1 ? end : undefined);
  return state;
}

/** An integer, or a number whose exponent has at most two digits. */
export function number(automaton: Automaton, isInteger: boolean): Rule {
  const rule = automaton.rule();
  const behind = automaton.state();
  const digits = automaton.state();
  automaton.skip(rule.start, digits);
  automaton.oneOf(rule.start, '-', digits);
  automaton.oneOf(digits, '0', behind);
  upTo(automaton, automaton.oneOf(digits, '123456789'), MAX_DIGITS - 1, behind);
  automaton.skip(behind, rule.end);
  if (isInteger) return rule;
  const exponent = automaton.state();
  automaton.skip(behind, exponent);
  const fraction = automaton.oneOf(automaton.oneOf(behind, '.'), DIGITS);
  upTo(automaton, fraction, MAX_DIGITS - 1, exponent);
  automaton.skip(exponent, rule.end);
  const sign = automaton.oneOf(exponent, 'eE');
  const first = automaton.state();
  automaton.skip(sign, first);
  automaton.oneOf(sign, '+-', first);
  upTo(automaton, automaton.oneOf(first, DIGITS), 1, rule.end);
  return rule;
}

/** Adds up to `count` more digits. */
function upTo(automaton: Automaton, from: number, count: number, end: number): void {
  let state = from;
  for (let i = 0; i < count; i++) {
    automaton.skip(state, end);
    state = automaton.oneOf(state, DIGITS);
  }
  automaton.skip(state, end);
}
