// What /proc knows of processes.

import { readdirSync, readFileSync } from 'node:fs';

function stat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold anything, so fields count from the last one.
    const [state, parent] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return null;
  }
}

/** A zombie has ended: only its parent's interest is missing. */
export function isAlive(pid) {
  const found = stat(pid);
  return found !== null && found.state !== 'Z' && found.state !== 'X';
}

function allPids() {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number);
}

/** Pids of the living children of `pid`. */
export function childrenOf(pid) {
  return allPids().filter((each) => isAlive(each) && stat(each)?.parent === pid);
}

/** Pids of the living descendants of `pid`. */
export function descendantsOf(pid) {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

export function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean);
  } catch {
    return [];
  }
}
