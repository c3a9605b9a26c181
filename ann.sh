# ann.sh NAME: annotated by perf samples
cd /tmp/h2; s=$(grep -o "bpf_prog_[0-9a-f]*_$1" ips | sort | uniq -c | sort -rn | head -1 | awk '{print $2}'); tag=${s#bpf_prog_}; tag=${tag%%_*}
grep "^$s+" ips | sed 's/.*+0x//' | sort | uniq -c | awk '{print $2,$1}' > hits
objdump -D -b binary -m i386:x86-64 $1.$tag.bin | awk 'BEGIN{while((getline l < "hits")>0){split(l,a," ");h[a[1]]=a[2]}} /^ *[0-9a-f]+:/{split($1,b,":"); n=(b[1] in h)?h[b[1]]:""; sub(/\t[0-9a-f ]*\t/,"\t"); printf "%6s %s\n",n,$0}'
